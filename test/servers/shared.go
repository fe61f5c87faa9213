package servers

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// shared is the server of [Database], which the watchdog stops.
var shared = sync.OnceValues(func() (*sharedServer, error) {
	h, err := guarded()
	if err != nil {
		return nil, err
	}
	p, err := newPostgres(context.Background(), h, options{})
	return &sharedServer{PostgresServer: p}, err
})

// sharedServer keeps the databases that tests are done with for the next ones: to
// drop one costs a checkpoint, and to create one writes all of its files.
type sharedServer struct {
	*PostgresServer

	mu   sync.Mutex
	free []string // names of empty databases
}

// Database returns the URL of a new, empty database in a server that all tests of
// the process share. When the test ends its connections are cut, and the URL leads
// nowhere.
func Database(tb testing.TB) string {
	tb.Helper()
	s, err := shared()
	check(tb, err)
	name := s.take()
	if name == "" {
		name, err = s.create(tb.Context())
		check(tb, err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		if err := s.giveBack(ctx, name); err != nil {
			tb.Errorf("empty a database: %v", err)
		}
	})
	return s.urlOf(name)
}

func (s *sharedServer) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.free) == 0 {
		return ""
	}
	name := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	return name
}

// giveBack empties a database under a name that no client knows.
func (s *sharedServer) giveBack(ctx context.Context, old string) error {
	name := s.nextName()
	err := poll(ctx, func(ctx context.Context) error { // clients may come back until it is renamed
		const cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = '"
		return errors.Join(s.exec(ctx, cut+old+"'"), s.exec(ctx, "ALTER DATABASE "+old+" RENAME TO "+name))
	})
	if err != nil {
		return err
	}
	if err := s.empty(ctx, name); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, name)
	return nil
}

// empty removes every schema and setting of a database.
func (s *sharedServer) empty(ctx context.Context, name string) error {
	conn, err := pgx.Connect(ctx, s.urlOf(name))
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "ALTER DATABASE "+name+` RESET ALL;
		DO $$ DECLARE name text; BEGIN
			FOR name IN SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' LOOP
				EXECUTE format('DROP SCHEMA %I CASCADE', name);
			END LOOP;
		END $$;
		CREATE SCHEMA public`)
	return errors.Join(err, conn.Close(ctx))
}
