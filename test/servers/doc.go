// Package servers starts real PostgreSQL, PgBouncer and Redis servers on loopback,
// without containers, for tests.
//
//	url := servers.Database(t)                        // an empty database of a server that the test binary shares
//	pg := servers.Postgres(t, servers.WithReplicas)   // a server of its own, to kill, freeze and promote
//	pool := servers.PgBouncer(t, pg.URL())            // transaction pooling in front of it
//	cache := servers.RedisCluster(t)                  // three primaries
//	proxy := servers.Proxy(t, pg.URL())               // connections to break, also at COMMIT
//
// What is started for a test is gone when the test ends, and what is shared when
// its process ends, however it ends:
//
//	test process ──starts──► servers, each working in a directory of its own
//	     └── pipe ──► watchdog: when the pipe closes, stops every server in
//	                  those directories and removes them
//
// So no TestMain needs to know of them, and no goroutine watches them. Servers
// need Debian's packages; a test whose server is not installed is skipped with a
// line that says so, and fails when [RequireEnv] names the server.
//
// The package never touches a server that it did not start: ports are free ones,
// directories are new, and before a server is used it must have said that it is
// the one just started.
package servers
