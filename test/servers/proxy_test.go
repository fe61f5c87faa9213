package servers_test

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"likewise/test/servers"
)

// commitForms are the ways in which a client can send a COMMIT.
var commitForms = map[string]func(context.Context, *pgx.Conn) error{
	"simple": func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, "COMMIT;")
		return err
	},
	"extended": func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.PgConn().ExecParams(ctx, "commit", nil, nil, nil, nil).Close()
		return err
	},
	"batch": func(ctx context.Context, c *pgx.Conn) error {
		b := &pgx.Batch{}
		b.Queue("SELECT 1")
		b.Queue("commit")
		return c.SendBatch(ctx, b).Close()
	},
}

func TestConnectionsDieAtCommit(t *testing.T) {
	t.Parallel()
	url := servers.Database(t)
	direct := connect(t, url)
	execute(t, direct, "CREATE TABLE likes (id int)")
	for form, commit := range commitForms {
		for _, tt := range []struct {
			name    string
			fault   servers.CommitFault
			told    bool // the client learns of the commit
			written bool
		}{
			{"no fault", servers.NoFault, true, true},
			{"commit lost", servers.CommitLost, false, false},
			{"answer lost", servers.AnswerLost, false, true},
		} {
			t.Run(form+"/"+tt.name, func(t *testing.T) {
				proxy := servers.Proxy(t, url)
				conn := connect(t, proxy.URL())
				proxy.OnCommit(func() servers.CommitFault { return tt.fault })
				execute(t, direct, "TRUNCATE likes")
				execute(t, conn, "BEGIN")
				execute(t, conn, "INSERT INTO likes VALUES (1)")
				if err := commit(t.Context(), conn); (err == nil) != tt.told {
					t.Errorf("the commit returned %v", err)
				}
				if n := number(t, direct, "SELECT count(*) FROM likes"); (n == 1) != tt.written {
					t.Errorf("%d rows were written", n)
				}
				if tt.fault != servers.NoFault && proxy.Fired(tt.fault) != 1 {
					t.Errorf("the fault fired %d times, want once", proxy.Fired(tt.fault))
				}
				proxy.OnCommit(nil)
				execute(t, connect(t, proxy.URL()), "BEGIN; INSERT INTO likes VALUES (2)")
			})
		}
	}
}

// What did not commit has no answer to lose.
func TestFaultsNeedACommit(t *testing.T) {
	t.Parallel()
	proxy := servers.Proxy(t, servers.Database(t)+"&application_name=x")
	conn := connect(t, proxy.URL())
	proxy.OnCommit(func() servers.CommitFault { return servers.AnswerLost })
	execute(t, conn, "SELECT 'commit'")
	execute(t, conn, "BEGIN")
	if _, err := conn.Exec(t.Context(), "SELECT 1/0"); err == nil {
		t.Fatal("a division by zero passed")
	}
	execute(t, conn, "COMMIT") // rolls back
	if n := proxy.Fired(servers.AnswerLost); n != 0 {
		t.Errorf("the fault fired %d times", n)
	}
}

func TestProxyAnswersWhoAsksForTLS(t *testing.T) {
	t.Parallel()
	proxy := servers.Proxy(t, servers.Database(t))
	cfg, err := pgx.ParseConfig(proxy.URL() + "&sslmode=prefer")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close(ctx)
}

func TestProxyCutsAndHeals(t *testing.T) {
	t.Parallel()
	proxy := servers.Proxy(t, servers.Redis(t).URL())
	open := dial(t, proxy.Address())
	open.ping(t)
	if n := proxy.Cut(); n != 1 {
		t.Errorf("%d connections were cut, want 1", n)
	}
	if _, err := open.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("an open connection ended with %v, want a reset", err)
	}
	if _, err := net.Dial("tcp", proxy.Address()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a new connection ended with %v, want a refusal", err)
	}
	if err := proxy.Heal(); err != nil {
		t.Fatal(err)
	}
	open = dial(t, proxy.Address())
	open.ping(t)

	const delay = 20 * time.Millisecond
	proxy.Delay(delay)
	if took := open.ping(t); took < 2*delay {
		t.Errorf("a delayed answer took %v, want at least %v", took, 2*delay)
	}
}

// plainConn speaks to Redis without a client that connects again by itself.
type plainConn struct{ net.Conn }

func dial(t *testing.T, address string) plainConn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return plainConn{conn}
}

// ping returns how long an answer takes.
func (c plainConn) ping(t *testing.T) time.Duration {
	t.Helper()
	begin := time.Now()
	_, err := c.Write([]byte("PING\r\n"))
	answer := make([]byte, len("+PONG\r\n"))
	if err == nil {
		_, err = io.ReadFull(c, answer)
	}
	if err != nil {
		t.Fatal(err)
	}
	return time.Since(begin)
}
