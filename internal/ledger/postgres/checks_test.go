package postgres

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"likewise/internal/ledger"
	"likewise/internal/like"
	"likewise/test/servers"
)

func TestDatabasesThatCannotKeepTheirWord(t *testing.T) {
	t.Parallel()
	db := servers.Database(t)
	with := func(option string) string {
		return db + "&options=" + strings.ReplaceAll(url.QueryEscape("-c "+option), "+", "%20")
	}
	openTest(t, testConfig(db)).Close()
	for option, want := range map[string]string{
		"synchronous_commit=off":                          "may lose what it committed",
		"default_transaction_isolation=serializable":      "default_transaction_isolation must be read committed",
		"default_transaction_isolation=repeatable\\ read": "default_transaction_isolation must be read committed",
	} {
		if why := refused(t, testConfig(with(option))); !strings.Contains(why, want) {
			t.Errorf("%s is refused with %q, want %q", option, why, want)
		}
	}
	unsafe := testConfig(with("synchronous_commit=off"))
	unsafe.AcceptUnsafe = true
	openTest(t, unsafe)
	unsafe.Replicas = []string{db}
	if why := refused(t, unsafe); !strings.Contains(why, "can miss acknowledged likes") {
		t.Errorf("replicas of a database that acknowledges before it writes are refused with %q", why)
	}
	exec := func(sql string) {
		t.Helper()
		if _, err := connect(t, db).Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec("CREATE DATABASE latin1 TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
	other, err := url.Parse(db)
	if err != nil {
		t.Fatal(err)
	}
	other.Path = "/latin1"
	if why := refused(t, testConfig(other.String())); !strings.Contains(why, "must be UTF8, not LATIN1") {
		t.Errorf("another encoding is refused with %q", why)
	}
	exec("DROP DATABASE latin1 WITH (FORCE)")
}

// A database is called broken only when nobody can mend it by waiting or by a grant.
func TestKindsOfRefusals(t *testing.T) {
	for code, want := range map[string]error{
		"XX001": like.ErrCorrupt,     // data_corrupted
		"42P01": like.ErrCorrupt,     // undefined_table
		"42501": like.ErrUnavailable, // insufficient_privilege
		"53300": like.ErrUnavailable, // too_many_connections
	} {
		if err := failure(t.Context(), "apply", &pgconn.PgError{Code: code}); !errors.Is(err, want) {
			t.Errorf("%s is %v, want %v", code, err, want)
		}
	}
}

// Settings of the server that only its start sets.
func TestServersThatLoseWhatTheyCommitted(t *testing.T) {
	heavyTest(t)
	t.Parallel()
	for _, setting := range []string{"fsync", "full_page_writes"} {
		cfg := testConfig(servers.Postgres(t, servers.With(setting, "off")).URL())
		if why := refused(t, cfg); !strings.Contains(why, setting+" off") || !strings.Contains(why, "accept") {
			t.Errorf("%s is refused with %q", setting, why)
		}
		cfg.AcceptUnsafe = true
		openTest(t, cfg)
	}
}

func TestErrorsHideThePassword(t *testing.T) {
	t.Parallel()
	const secret = "s3cret-w0rd"
	good, err := url.Parse(servers.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*url.URL){
		"nobody there": func(u *url.URL) { u.Host = "127.0.0.1:1" },
		"no such host": func(u *url.URL) { u.Host = "no..host:5432" }, // nor is a name server asked
		"no database":  func(u *url.URL) { u.Path = "/absent" },
		"no URL":       func(u *url.URL) { u.RawQuery = "sslmode=sometimes" },
	} {
		u := *good
		u.User = url.UserPassword(good.User.Username(), secret)
		change(&u)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		_, err := Open(ctx, testConfig(u.String()))
		cancel()
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", name, err)
		}
		if !errors.Is(err, like.ErrUnavailable) && !errors.Is(err, like.ErrInvalid) {
			t.Errorf("%s: %v is of no kind", name, err)
		}
	}
}

// Wrong totals of every sort are found, and corrected once although two repair at once.
func TestWrongTotals(t *testing.T) {
	t.Parallel()
	both := openNodes(t, hasty(servers.Database(t)), 2)
	s := both.all[0].shards[0]
	injuries := []string{
		"UPDATE likewise.totals SET count = count + 1 WHERE item = $1",
		"UPDATE likewise.totals SET count = count - 1 WHERE item = $1",
		"UPDATE likewise.totals SET count = -5 WHERE item = $1",
		"DELETE FROM likewise.totals WHERE item = $1",
	}
	for n, sql := range injuries {
		for u := range 3 {
			apply(t, both, like.Command{Item: postN(n), User: userN(u), Op: like.OpLike})
		}
		totalIs(t, both, postN(n), 3)
		execute(t, s, sql, itemText(postN(n)))
	}
	if found := drift(t, both.all[1]); len(found) != len(injuries) {
		t.Fatalf("of %d wrong totals these are found: %+v", len(injuries), found)
	}
	var mu sync.Mutex
	repaired := map[like.Item]int{}
	var repairs sync.WaitGroup
	for _, l := range both.all {
		repairs.Go(func() {
			for a, err := range l.AuditAll(t.Context(), true) {
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if a.Repaired {
					repaired[a.Item]++
				}
				mu.Unlock()
			}
		})
		repairs.Go(func() { // while likes go on
			for u := range 20 {
				cmd := like.Command{Item: postN(u % len(injuries)), User: "late" + userN(u), Op: like.OpLike}
				if _, err := l.Apply(t.Context(), cmd); err != nil {
					t.Error(err)
				}
			}
		})
	}
	repairs.Wait()
	for n := range injuries {
		if repaired[postN(n)] != 1 {
			t.Errorf("%v was corrected %d times", postN(n), repaired[postN(n)])
		}
		totalIs(t, both, postN(n), 3+20/int64(len(injuries)))
	}
	if found := drift(t, both.all[0]); found != nil {
		t.Errorf("behind the repair: %+v", found)
	}
}

// Stamps grow over nodes, restarts and drains, whatever their clocks say.
func TestStampsGrowOverNodes(t *testing.T) {
	t.Parallel()
	url := servers.Database(t)
	last, user := like.Stamp(0), 0
	accepted := func(what string, l ledger.Writer) {
		t.Helper()
		for range 3 {
			user++
			ack := apply(t, l, like.Command{Item: post("1"), User: userN(user), Op: like.OpLike})
			if ack.State.Since <= last {
				t.Errorf("%s: stamp %d is not larger than %d", what, ack.State.Since, last)
			}
			last = ack.State.Since
		}
	}
	behind := func(d time.Duration, drains bool) *Ledger {
		cfg := hasty(url)
		cfg.Drain = drains
		cfg.Now = func() time.Time { return time.Now().Add(-d) }
		return openTest(t, cfg)
	}
	right, late, later := behind(0, false), behind(time.Hour, false), behind(2*time.Hour, false)
	accepted("right", right)
	accepted("an hour late", late)
	accepted("two hours late", later)
	accepted("right again", right)
	drains := behind(3*time.Hour, true)
	totalIs(t, drains, post("1"), int64(user))
	execute(t, right.shards[0], trimSQL, "0s")
	for _, l := range []*Ledger{right, late, later, drains} {
		crash(l)
	}
	accepted("drained, trimmed and opened again", behind(4*time.Hour, true))
	own := hasty(url) // the database's clock
	accepted("by the database's clock", openTest(t, own))
}

// A node that vanishes between its statement and its COMMIT keeps others waiting for
// a few seconds.
func TestNodeVanishesBeforeItsCommit(t *testing.T) {
	heavyTest(t)
	t.Parallel()
	url := servers.Database(t)
	gone, other := openTest(t, testConfig(url)), openTest(t, testConfig(url))
	cmd := like.Command{Item: post("1"), User: "u", Op: like.OpLike}
	conn, err := gone.shards[0].write.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	lost := newCall([]like.Command{cmd})
	if _, err := gone.shards[0].execute(t.Context(), conn, newStep(runsOf([]*call{lost}), 1), applySQL); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	ack := apply(t, other, cmd)
	took := time.Since(begin)
	if ack.Count != 1 || took < 5*time.Second || took > 20*time.Second {
		t.Errorf("the other node was answered %+v after %v, want 10 s", ack, took)
	}
	totalIs(t, other, post("1"), 1)
}

// A node that begins knows the largest stamp of every database.
func TestStampsGrowOverDatabases(t *testing.T) {
	t.Parallel()
	cfg := hasty(servers.Database(t), servers.Database(t), servers.Database(t))
	last := like.Stamp(0)
	for n := range 8 { // items of one database after those of another
		cfg.Now = func() time.Time { return time.Now().Add(-time.Duration(n) * time.Hour) }
		l := openTest(t, cfg)
		ack := apply(t, l, like.Command{Item: postN(n), User: "u", Op: like.OpLike})
		if ack.State.Since <= last {
			t.Errorf("stamp %d in database %d is not larger than %d", ack.State.Since, l.shard(postN(n)).number, last)
		}
		last = ack.State.Since
		crash(l)
	}
}
