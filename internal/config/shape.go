package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const (
	postgresExample = "postgres://likewise@127.0.0.1:5432/likewise"
	redisExample    = "redis://127.0.0.1:6379"
	encodeSecret    = "in a password, write signs such as / ? # @ : percent-encoded"
)

// checkShape refuses ledgers, roles and keys that do not go together.
func (c Config) checkShape() error {
	errs := []error{c.checkLedger(), c.checkReplicas(), c.checkRedis(), c.checkRole()}
	switch {
	case !c.Embedded():
		errs = append(errs, c.checkSharedKeys())
	case c.DataDir == "":
		errs = append(errs, errors.New("data_dir: is empty; name the directory that holds the store"))
	}
	return errors.Join(errs...)
}

func (c Config) checkLedger() error {
	switch {
	case c.Embedded():
		return nil
	case len(c.Ledger) == 0:
		return fmt.Errorf("ledger: is empty; write %s, or the URL of a PostgreSQL database such as %s", embedded, postgresExample)
	case len(c.Ledger) == 1 && plainWord.MatchString(string(c.Ledger[0])):
		return fmt.Errorf("ledger: %q is unknown; write %s, or the URL of a PostgreSQL database such as %s", c.Ledger[0], embedded, postgresExample)
	}
	return checkDatabases("ledger", c.Ledger)
}

func (c Config) checkReplicas() error {
	if len(c.Postgres.Replicas) > 0 && c.Embedded() {
		return errors.New("postgres.replicas: belong to databases, and ledger is pebble; leave them out, or set ledger to the URL of their primary")
	}
	return checkDatabases("postgres.replicas", c.Postgres.Replicas)
}

// checkDatabases checks URLs of PostgreSQL databases, of which no two may be one.
func checkDatabases(key string, list URLs) error {
	var errs []error
	seen := map[string]int{}
	for i, one := range list {
		u, err := one.database()
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %q %w", key, one, err))
			continue
		}
		place := u.Host + u.Query().Get("host") + u.Path
		if first, twice := seen[place]; twice {
			errs = append(errs, fmt.Errorf("%s: URLs %d and %d lead to one database, %q; name each once", key, first+1, i+1, one))
		}
		seen[place] = i
	}
	return errors.Join(errs...)
}

// database reads the URL of a PostgreSQL database. The error continues a sentence
// that began with the URL.
func (u URL) database() (*url.URL, error) {
	parsed, ok := u.parse()
	switch {
	case !beginsURL.MatchString(string(u)):
		return nil, fmt.Errorf("is not a URL, and keywords such as host=… are not read; write it like %s", postgresExample)
	case !ok:
		return nil, fmt.Errorf("cannot be read as a URL; write it like %s, and %s", postgresExample, encodeSecret)
	case parsed.Scheme != "postgres" && parsed.Scheme != "postgresql":
		return nil, fmt.Errorf("is not the URL of a PostgreSQL database; write it like %s", postgresExample)
	case parsed.Host == "" && parsed.Query().Get("host") == "":
		return nil, fmt.Errorf("names no host; write it like %s", postgresExample)
	case parsed.Host != "" && !areHosts(parsed.Host, "5432"):
		return nil, fmt.Errorf("has a host or a port that cannot be; write it like %s, and %s", postgresExample, encodeSecret)
	case strings.Trim(parsed.Path, "/") == "" || strings.ContainsAny(parsed.Path[1:], "/,"):
		return nil, fmt.Errorf("does not name one database; write it like %s, and begin each of several URLs with postgres://", postgresExample)
	}
	return parsed, nil
}

func (c Config) checkRedis() error {
	if p := c.Shared.Prefix; p == "" || len(p) > 64 || strings.ContainsAny(p, "{} \r\n") {
		return fmt.Errorf("shared.prefix: %q cannot begin names; write 1 to 64 bytes without braces and spaces", p)
	}
	if c.Redis == "" {
		return nil
	}
	if c.Embedded() {
		return errors.New("redis: is for nodes that share a ledger, and ledger is pebble, a store of one process; leave redis out, or set ledger to the URL of a PostgreSQL database")
	}
	fault := func(why string) error {
		return fmt.Errorf("redis: %q %s; write it like %s, and %s", c.Redis, why, redisExample, encodeSecret)
	}
	u, ok := c.Redis.parse()
	if !ok {
		return fault("cannot be read as a URL")
	}
	_, withPassword := u.User.Password()
	switch {
	case u.Scheme != "redis" && u.Scheme != "rediss":
		return fault("is not the URL of a Redis")
	case !areHosts(u.Host, "6379"):
		return fault("needs a host and a port, or several separated by commas")
	case !isNumber(cmp.Or(strings.TrimPrefix(u.Path, "/"), "0")) || u.RawQuery != "" || u.Fragment != "":
		return fault("has more behind the port than the number of a database")
	case strings.Contains(u.Host, ",") && strings.Trim(u.Path, "/0") != "":
		return fault("is a Redis Cluster, which has database 0 only")
	case u.User != nil && !withPassword:
		return fault("has a user without a password; a password alone is written redis://:PASSWORD@host:port")
	}
	return nil
}

// areHosts reports whether list is hosts separated by commas; port is that of hosts
// without one.
func areHosts(list, port string) bool {
	return !slices.ContainsFunc(strings.Split(list, ","), func(one string) bool {
		host, number, err := net.SplitHostPort(one)
		if err != nil {
			host, number, err = net.SplitHostPort(one + ":" + port)
		}
		return err != nil || host == "" || !isNumber(number) || strings.Trim(number, "0") == ""
	})
}

// isNumber reports whether text is a number from 0 to 65535.
func isNumber(text string) bool {
	_, err := strconv.ParseUint(text, 10, 16)
	return err == nil
}

// checkRole refuses a part of a service whose store another process cannot open.
func (c Config) checkRole() error {
	if !c.Embedded() || !slices.Contains([]string{"api", "aggregator", "reconciler"}, c.Role) {
		return nil
	}
	return fmt.Errorf("role: %q needs a ledger that processes share, and ledger is pebble, a store of one process; "+
		"set ledger to the URL of a PostgreSQL database such as %s, or role to all", c.Role, postgresExample)
}

// checkSharedKeys refuses keys that each node would make for itself: a token or a
// cursor of one would mean nothing to the next.
func (c Config) checkSharedKeys() error {
	switch {
	case c.JWT.SecretFile != "":
		return nil
	case c.JWKS == "":
		return errors.New("jwt.secret_file: is empty, and nodes that share a ledger must accept the same tokens; " +
			"make one key for all of them, `head -c 48 /dev/urandom | base64 > token.key`, and name its file here, or set jwks")
	case c.CursorKeyFile == "":
		return errors.New("cursor_key_file: is empty, and nodes that share a ledger must read each other's cursors, which jwks has no key for; " +
			"make one key for all of them, `head -c 48 /dev/urandom | base64 > cursor.key`, and name its file here")
	}
	return nil
}
