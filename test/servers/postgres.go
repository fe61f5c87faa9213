package servers

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// postgresUser is whom PostgreSQL runs as when this process is root, which it refuses.
const postgresUser = "postgres"

// postgresSettings are those of every server: durable, and as common as can be.
var postgresSettings = []setting{
	{"listen_addresses", "127.0.0.1"},
	{"unix_socket_directories", ""}, // their paths have a length limit that temporary directories meet
	{"fsync", "on"},
	{"max_connections", "200"},
	{"wal_level", "replica"},
	{"max_wal_senders", "8"},
	{"hot_standby", "on"},
	{"shared_buffers", "128MB"},
	{"log_line_prefix", "%m [%p] "},
}

// PostgresServer is one PostgreSQL server, which trusts every connection from
// loopback. Its URLs stay the same over restarts. What harms and starts it is called
// by one goroutine.
type PostgresServer struct {
	home    *home
	bin     string
	port    int
	proc    *process
	replica *PostgresServer
	names   atomic.Int64 // of databases, given so far
}

// Postgres starts a PostgreSQL server for the test alone, in 2 s, and stops it when
// the test ends. Tests that only need a database use [Database].
func Postgres(tb testing.TB, opts ...Option) *PostgresServer {
	tb.Helper()
	h, err := guarded()
	check(tb, err)
	p, err := newPostgres(tb.Context(), h, optionsOf(opts))
	check(tb, err)
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("log of PostgreSQL: %s", p.proc.logTail())
		}
		if err := p.remove(); err != nil {
			tb.Error(err)
		}
	})
	return p
}

// URL returns the URL of the server's first database.
func (p *PostgresServer) URL() string { return p.urlOf("postgres") }

func (p *PostgresServer) urlOf(database string) string {
	return fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", postgresUser, addressOf(p.port), database)
}

// Database returns the URL of a new, empty database.
func (p *PostgresServer) Database(tb testing.TB) string {
	tb.Helper()
	name, err := p.create(tb.Context())
	check(tb, err)
	return p.urlOf(name)
}

// create makes a database and returns its name.
func (p *PostgresServer) create(ctx context.Context) (string, error) {
	name := p.nextName()
	return name, p.exec(ctx, "CREATE DATABASE "+name)
}

func (p *PostgresServer) nextName() string { return "t" + strconv.FormatInt(p.names.Add(1), 10) }

// Replica returns the streaming replica that [WithReplicas] asked for.
func (p *PostgresServer) Replica() *PostgresServer { return p.replica }

func newPostgres(ctx context.Context, h *home, o options) (*PostgresServer, error) {
	bin, err := postgresPrograms()
	if err != nil {
		return nil, err
	}
	p := &PostgresServer{home: h, bin: bin}
	initialize := func() error {
		err := p.run(ctx, "initdb", "-D", p.data(), "-U", postgresUser, "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
		if err != nil {
			return err
		}
		return p.configure(slices.Concat(postgresSettings, o.settings))
	}
	if err := p.begin(ctx, o.port, initialize); err != nil {
		return nil, err
	}
	if !o.replicas {
		return p, nil
	}
	p.replica = &PostgresServer{home: h, bin: bin}
	copyPrimary := func() error {
		source := "host=127.0.0.1 user=" + postgresUser + " port=" + strconv.Itoa(p.port)
		return p.replica.run(ctx, "pg_basebackup", "-d", source, "-D", p.replica.data(), "-R", "-X", "stream", "-c", "fast", "--no-sync")
	}
	if err := p.replica.begin(ctx, next(o.port, 1), copyPrimary); err != nil {
		return nil, errors.Join(err, p.remove())
	}
	return p, nil
}

// postgresPrograms returns the directory with the programs of the newest version.
func postgresPrograms() (string, error) {
	if err := supported("postgres"); err != nil {
		return "", err
	}
	if !mayRun() {
		return "", notInstalled("postgres", "postgresql")
	}
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres"); len(found) > 0 {
		version := func(path string) int {
			n, _ := strconv.Atoi(strings.Split(path, "/")[4])
			return n
		}
		return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })), nil
	}
	path, ok := program("initdb")
	if !ok {
		return "", notInstalled("postgres", "postgresql")
	}
	return filepath.Dir(path), nil
}

// mayRun reports whether there is a user whom servers that refuse root can run as.
func mayRun() bool {
	_, _, err := idsOf(postgresUser)
	return err == nil || os.Getuid() != 0
}

// begin makes the server's directory, fills it, and starts the server.
func (p *PostgresServer) begin(ctx context.Context, port int, fill func() error) error {
	dir, err := p.home.room("postgres")
	if err != nil {
		return err
	}
	user, err := giveAway(dir)
	if err != nil {
		return err
	}
	p.proc = &process{name: "PostgreSQL", dir: dir, user: user}
	if err := fill(); err != nil {
		return err
	}
	return onFreePort(port, func(port int) error {
		p.port = port
		p.proc.argv = []string{filepath.Join(p.bin, "postgres"), "-D", p.data(), "-p", strconv.Itoa(port)}
		return p.proc.start(ctx, p.ready)
	})
}

// giveAway makes a directory that of the user for servers that refuse to run as
// root, when this process is root, and returns that user, or none.
func giveAway(dir string) (user string, err error) {
	if os.Getuid() != 0 {
		return "", nil
	}
	uid, gid, err := idsOf(postgresUser)
	if err == nil {
		err = os.Chown(dir, int(uid), int(gid))
	}
	if err != nil {
		return "", fmt.Errorf("give a directory to %s: %w", postgresUser, err)
	}
	return postgresUser, nil
}

func (p *PostgresServer) data() string { return filepath.Join(p.proc.dir, "data") }

// run runs a program of PostgreSQL to its end.
func (p *PostgresServer) run(ctx context.Context, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(p.bin, name), args...)
	cmd.Dir = p.proc.dir
	cmd.SysProcAttr = detached(p.proc.user)
	out, err := cmd.CombinedOutput()
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%s: %w; set TMPDIR to a directory that user %s can enter", name, err, p.proc.user)
	}
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}

func (p *PostgresServer) configure(settings []setting) error {
	f, err := os.OpenFile(filepath.Join(p.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("configure PostgreSQL: %w", err)
	}
	var text strings.Builder
	for _, s := range settings {
		fmt.Fprintf(&text, "%s = %s\n", s.name, quoted(s.value))
	}
	_, err = f.WriteString(text.String())
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("configure PostgreSQL: %w", err)
	}
	return nil
}

func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// ready asks whose data the server on the port has: another one may be there.
func (p *PostgresServer) ready(ctx context.Context) error {
	dir, err := query[string](ctx, p, "SHOW data_directory")
	if err == nil && dir != p.data() {
		return fmt.Errorf("another server answers, with its data in %s", dir)
	}
	return err
}

// query returns the one value that a statement gives.
func query[T any](ctx context.Context, p *PostgresServer, sql string) (value T, err error) {
	conn, err := pgx.Connect(ctx, p.URL())
	if err != nil {
		return value, err
	}
	err = conn.QueryRow(ctx, sql).Scan(&value)
	return value, errors.Join(err, conn.Close(ctx))
}

func (p *PostgresServer) exec(ctx context.Context, sql string) error {
	conn, err := pgx.Connect(ctx, p.URL())
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql)
	return errors.Join(err, conn.Close(ctx))
}

// remove stops the server and its replica, and removes their data.
func (p *PostgresServer) remove() error {
	var err error
	if p.replica != nil {
		err = p.replica.remove()
	}
	return errors.Join(err, p.proc.quit(context.Background(), syscall.SIGQUIT), os.RemoveAll(p.proc.dir))
}
