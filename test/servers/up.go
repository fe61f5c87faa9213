package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// The ports of servers that people start, where nobody else has them.
const (
	upPostgres  = 15432
	upPgBouncer = 16432
	upRedis     = 16379
)

// Kinds lists what [Up] can start.
var Kinds = []string{"postgres", "postgres-replica", "pgbouncer", "redis", "redis-cluster"}

// Up starts servers below a new directory and leaves them running, for people. It
// returns the settings of a node that uses them, as environment variables. The
// script down stops them and removes their data.
func Up(ctx context.Context, dir string, kinds ...string) (env []string, err error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, err
	}
	switch err := os.Mkdir(dir, 0o711); {
	case errors.Is(err, os.ErrExist):
		return nil, fmt.Errorf("%s exists: what runs there is stopped, and its data removed, by test/servers/down", dir)
	case err != nil:
		return nil, err
	}
	u := &ups{home: &home{dir: dir}}
	for _, kind := range kinds {
		if err := u.start(ctx, kind); err != nil {
			return nil, errors.Join(err, exec.Command("sh", "-c", down, "down", dir).Run())
		}
	}
	return u.env, nil
}

// ups is what Up has started so far.
type ups struct {
	home     *home
	postgres string // URL of its database
	env      []string
}

// set sets a variable anew: PgBouncer's URL takes the place of PostgreSQL's.
func (u *ups) set(name, value string) {
	u.env = slices.DeleteFunc(u.env, func(line string) bool { return strings.HasPrefix(line, name+"=") })
	u.env = append(u.env, name+"="+value)
}

func (u *ups) start(ctx context.Context, kind string) error {
	switch kind {
	case "postgres", "postgres-replica":
		p, err := newPostgres(ctx, u.home, options{port: upPostgres, replicas: kind == "postgres-replica"})
		if err != nil {
			return err
		}
		if err := p.exec(ctx, "CREATE DATABASE likewise"); err != nil {
			return err
		}
		u.postgres = p.urlOf("likewise")
		u.set("LIKEWISE_LEDGER", u.postgres)
		if p.replica != nil {
			u.set("LIKEWISE_POSTGRES_REPLICAS", p.replica.urlOf("likewise"))
		}
	case "pgbouncer":
		if u.postgres == "" {
			return errors.New("pgbouncer: it pools connections to PostgreSQL; name postgres before it")
		}
		b, err := newPgBouncer(ctx, u.home, u.postgres, options{port: upPgBouncer})
		if err != nil {
			return err
		}
		u.set("LIKEWISE_LEDGER", b.URL())
		u.set("LIKEWISE_POSTGRES_PGBOUNCER", "true")
	case "redis", "redis-cluster":
		count := 1
		if kind == "redis-cluster" {
			count = primaries
		}
		r, err := newRedis(ctx, u.home, count, options{port: upRedis})
		if err != nil {
			return err
		}
		u.set("LIKEWISE_REDIS", r.URL())
	default:
		return fmt.Errorf("%s: no such server; there are %s", kind, strings.Join(Kinds, ", "))
	}
	return nil
}
