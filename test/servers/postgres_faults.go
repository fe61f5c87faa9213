package servers

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// StopImmediate stops the server without a checkpoint, as pg_ctl's immediate mode
// does: the next start recovers from the log.
func (p *PostgresServer) StopImmediate(tb testing.TB) {
	tb.Helper()
	check(tb, p.proc.quit(tb.Context(), syscall.SIGQUIT))
}

// Kill9 kills the server and all its processes at once.
func (p *PostgresServer) Kill9(tb testing.TB) {
	tb.Helper()
	check(tb, p.proc.kill(tb.Context()))
}

// Start starts the stopped or killed server with its data, and waits until it
// answers.
func (p *PostgresServer) Start(tb testing.TB) {
	tb.Helper()
	check(tb, p.proc.start(tb.Context(), p.ready))
}

// Freeze halts all processes of the server: connections stay open, and nothing
// answers. The server is thawed when the test ends, if not before.
func (p *PostgresServer) Freeze(tb testing.TB) {
	tb.Helper()
	_, err := p.proc.freeze()
	check(tb, err)
}

// Thaw lets a frozen server go on.
func (p *PostgresServer) Thaw(tb testing.TB) {
	tb.Helper()
	check(tb, p.proc.thaw())
}

// Promote makes a replica a primary of its own, and waits until it takes writes.
func (p *PostgresServer) Promote(tb testing.TB) {
	tb.Helper()
	promoted, err := query[bool](tb.Context(), p, "SELECT pg_promote(true, 60)")
	check(tb, err)
	if !promoted {
		tb.Fatal("PostgreSQL was not promoted within 60 s")
	}
}

// StandAlone ends the server and starts it again as a replica of nobody: it has its own
// log, shows what that has, and takes no writes.
func (p *PostgresServer) StandAlone(tb testing.TB) {
	tb.Helper()
	p.StopImmediate(tb)
	check(tb, os.WriteFile(filepath.Join(p.data(), "standby.signal"), nil, 0o644))
	p.Start(tb)
}

// Sever cuts the connections of all clients, and returns how many there were.
func (p *PostgresServer) Sever(tb testing.TB) int {
	tb.Helper()
	n, err := query[int](tb.Context(), p, `SELECT count(pg_terminate_backend(pid))
		FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`)
	check(tb, err)
	return n
}

// Set changes a setting of the running server, such as "synchronous_standby_names".
// Some take effect with the next start only.
func (p *PostgresServer) Set(tb testing.TB, name, value string) {
	tb.Helper()
	check(tb, p.exec(tb.Context(), "ALTER SYSTEM SET "+name+" = "+quoted(value)))
	check(tb, p.exec(tb.Context(), "SELECT pg_reload_conf()"))
}
