package servers

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
)

// PgBouncerServer pools the connections to a PostgreSQL server by transaction.
type PgBouncerServer struct {
	target *url.URL
	port   int
	proc   *process
}

// PgBouncer starts a PgBouncer in front of the server of a PostgreSQL URL for the
// test, and stops it when the test ends.
func PgBouncer(tb testing.TB, postgresURL string, opts ...Option) *PgBouncerServer {
	tb.Helper()
	h, err := guarded()
	check(tb, err)
	b, err := newPgBouncer(tb.Context(), h, postgresURL, optionsOf(opts))
	check(tb, err)
	tb.Cleanup(func() {
		if err := errors.Join(b.proc.kill(context.Background()), os.RemoveAll(b.proc.dir)); err != nil {
			tb.Error(err)
		}
	})
	return b
}

// URL returns the URL of the database that PgBouncer was started with, through it.
// Other databases of that server are behind it under their own names.
func (b *PgBouncerServer) URL() string {
	through := *b.target
	through.Host = addressOf(b.port)
	return through.String()
}

// pgBouncerSettings leave the pool small: 20 connections of the server at most.
var pgBouncerSettings = []setting{
	{"listen_addr", "127.0.0.1"},
	{"unix_socket_dir", ""},
	{"auth_type", "trust"},
	{"auth_file", "users"},
	{"admin_users", postgresUser},
	{"pool_mode", "transaction"},
	{"max_client_conn", "1000"},
	{"default_pool_size", "20"},
}

func newPgBouncer(ctx context.Context, h *home, postgresURL string, o options) (*PgBouncerServer, error) {
	if err := supported("pgbouncer"); err != nil {
		return nil, err
	}
	path, ok := program("pgbouncer")
	if !ok || !mayRun() {
		return nil, notInstalled("pgbouncer", "pgbouncer")
	}
	target, err := url.Parse(postgresURL)
	if err != nil {
		return nil, fmt.Errorf("start PgBouncer: %w", err)
	}
	dir, err := h.room("pgbouncer")
	if err != nil {
		return nil, err
	}
	user, err := giveAway(dir)
	if err != nil {
		return nil, err
	}
	b := &PgBouncerServer{target: target, proc: &process{name: "PgBouncer", dir: dir, user: user}}
	b.proc.argv = []string{path, b.config()}
	return b, onFreePort(o.port, func(port int) error {
		b.port = port
		if err := b.configure(o.settings); err != nil {
			return err
		}
		return b.proc.start(ctx, b.ready)
	})
}

func (b *PgBouncerServer) config() string { return filepath.Join(b.proc.dir, "pgbouncer.ini") }

func (b *PgBouncerServer) configure(more []setting) error {
	text := fmt.Appendf(nil, "[databases]\n* = host=%s port=%s\n[pgbouncer]\nlisten_port = %d\n", b.target.Hostname(), b.target.Port(), b.port)
	for _, s := range slices.Concat(pgBouncerSettings, more) {
		text = fmt.Appendf(text, "%s = %s\n", s.name, s.value)
	}
	users := fmt.Appendf(nil, "%q \"\"\n", b.target.User.Username())
	err := errors.Join(os.WriteFile(b.config(), text, 0o644), os.WriteFile(filepath.Join(b.proc.dir, "users"), users, 0o644))
	if err != nil {
		return fmt.Errorf("configure PgBouncer: %w", err)
	}
	return nil
}

// ready asks which settings the server on the port was started with.
func (b *PgBouncerServer) ready(ctx context.Context) error {
	admin := *b.target
	admin.Host, admin.Path = addressOf(b.port), "/pgbouncer"
	cfg, err := pgx.ParseConfig(admin.String())
	if err != nil {
		return err
	}
	cfg.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol // all that its console speaks
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	rows, err := conn.Query(ctx, "SHOW CONFIG")
	if err != nil {
		return errors.Join(err, conn.Close(ctx))
	}
	settings, err := pgx.CollectRows(rows, pgx.RowToMap)
	own := slices.ContainsFunc(settings, func(row map[string]any) bool { return row["value"] == b.config() })
	if err == nil && !own {
		err = errors.New("another server answers")
	}
	return errors.Join(err, conn.Close(ctx))
}
