package config

import (
	"strings"
	"testing"
)

// withSecret is what a shared ledger asks for besides.
const withSecret = "--jwt-secret-file=/run/secrets/token.key"

func TestShapesThatWork(t *testing.T) {
	for name, args := range map[string][]string{
		"nothing said":          nil,
		"embedded":              {"--ledger=pebble"},
		"one database":          {"--ledger=postgres://u:p@db/likes", withSecret},
		"other scheme":          {"--ledger=postgresql://u:p@db/likes?sslmode=verify-full", withSecret},
		"IPv6":                  {"--ledger=postgres://u@[::1]:5433/likes,postgres://[::1]/likes", withSecret},
		"failover hosts":        {"--ledger=postgres://u@h1:5432,h2/likes?target_session_attrs=read-write", withSecret},
		"socket":                {"--ledger=postgres:///likes?host=/run/postgresql", withSecret},
		"odd password":          {"--ledger=postgres://u:%2F%3F%23%40%3A@db/likes", withSecret},
		"shards and replicas":   {"--ledger=postgres://h1/likes,postgres://h2/likes", "--postgres-replicas=postgres://h3/likes", withSecret},
		"Redis":                 {"--ledger=postgres://db/likes", "--redis=redis://h", withSecret},
		"a database of Redis":   {"--ledger=postgres://db/likes", "--redis=redis://h:6379/2", "--shared-prefix=a", withSecret},
		"Redis Cluster and TLS": {"--ledger=postgres://db/likes", "--redis=rediss://me:p@h1:1,h2:2,[::1]:3", withSecret},
		"a part":                {"--ledger=postgres://db/likes", "--role=aggregator", withSecret},
		"keys elsewhere":        {"--ledger=postgres://db/likes", "--jwks=https://id.example/keys", "--cursor-key-file=c"},
		"both keys":             {"--ledger=postgres://db/likes", "--jwks=https://id.example/keys", withSecret},
		"no directory":          {"--ledger=postgres://db/likes", "--data-dir=", withSecret},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := load(t, "", nil, args); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestShapesThatDoNot(t *testing.T) {
	const database = "--ledger=postgres://db/likes"
	for _, tt := range []struct {
		name string
		args []string
		want []string // parts of the error
	}{
		{"no ledger", []string{"--ledger="}, []string{"ledger: is empty", "pebble", postgresExample}},
		{"other word", []string{"--ledger=sqlite"}, []string{`ledger: "sqlite" is unknown`, "pebble", postgresExample}},
		{"other database", []string{"--ledger=mysql://u:hunter2@db/likes", withSecret}, []string{"ledger", "mysql://u:***@db/likes", "not the URL of a PostgreSQL"}},
		{"pebble and more", []string{"--ledger=pebble,postgres://db/likes", withSecret}, []string{`ledger: "pebble" is not a URL`}},
		{"keywords", []string{"--ledger=host=db password=hunter2 dbname=likes", withSecret}, []string{`ledger: "***" is not a URL`, "host=…", postgresExample}},
		{"raw sign in a password", []string{"--ledger=postgres://u:hunter2/x@db/likes", withSecret}, []string{"ledger: \"postgres://***\"", "percent-encoded"}},
		{"broken escape", []string{"--ledger=postgres://u:hunter2%@db/likes", withSecret}, []string{"cannot be read as a URL", "percent-encoded"}},
		{"no host", []string{"--ledger=postgres:///likes", withSecret}, []string{"names no host"}},
		{"no port number", []string{"--ledger=postgres://db:x,h2:1/likes", withSecret}, []string{"host or a port"}},
		{"no database", []string{"--ledger=postgres://u:hunter2@db", withSecret}, []string{"does not name one database"}},
		{"comma at the end", []string{"--ledger=postgres://db/likes,", withSecret}, []string{"does not name one database", "begin each"}},
		{"one shard twice", []string{"--ledger=postgres://a@db/likes,postgres://b@db/likes", withSecret}, []string{"URLs 1 and 2 lead to one database"}},
		{"second shard wrong", []string{"--ledger=postgres://db/likes,postgres://u:hunter2@db", withSecret}, []string{`ledger: "postgres://u:***@db"`}},
		{"replica of a directory", []string{"--postgres-replicas=postgres://u:hunter2@h/likes"}, []string{"postgres.replicas", "ledger is pebble"}},
		{"replica without database", []string{database, "--postgres-replicas=postgres://u:hunter2@h", withSecret}, []string{"postgres.replicas", "does not name one database"}},
		{"Redis alone", []string{"--redis=redis://:hunter2@h:1"}, []string{"redis", "ledger is pebble", "leave redis out"}},
		{"Redis with an odd port", []string{database, withSecret, "--redis=redis://:hunter2@h:0"}, []string{"redis", "redis://:***@h:0", "host and a port"}},
		{"Redis with a query", []string{database, withSecret, "--redis=redis://h:1/2?db=hunter2"}, []string{"redis", "behind the port"}},
		{"Redis with a name", []string{database, withSecret, "--redis=redis://h:1/likes"}, []string{"redis", "number of a database"}},
		{"Redis Cluster with a database", []string{database, withSecret, "--redis=redis://h:1,h:2/2"}, []string{"redis", "database 0 only"}},
		{"prefix", []string{database, withSecret, "--shared-prefix=a{b"}, []string{"shared.prefix", `"a{b"`, "without braces"}},
		{"Redis password as a user", []string{database, withSecret, "--redis=redis://x@h:1"}, []string{"redis", "user without a password", "redis://:PASSWORD@"}},
		{"Redis of another kind", []string{database, withSecret, "--redis=memcached://u:hunter2@h:1"}, []string{"redis", "not the URL of a Redis"}},
		{"Redis without scheme", []string{database, withSecret, "--redis=me:hunter2@h:1"}, []string{"redis", "cannot be read", redisExample}},
		{"two Redis", []string{database, withSecret, "--redis=redis://h:1,redis://u:hunter2@h:2"}, []string{"redis"}},
		{"part of a directory", []string{"--role=reconciler"}, []string{`role: "reconciler"`, "ledger is pebble", "set ledger to", "or role to all"}},
		{"no shared key", []string{database}, []string{"jwt.secret_file", "head -c 48 /dev/urandom | base64 > token.key", "jwks"}},
		{"no shared key for cursors", []string{database, "--jwks=keys.json"}, []string{"cursor_key_file", "head -c 48"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := load(t, "", nil, tt.args)
			if err == nil {
				t.Fatal("accepted")
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error lacks %q:\n%v", part, err)
				}
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows a password: %v", err)
			}
		})
	}
}
