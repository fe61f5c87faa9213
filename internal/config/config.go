// Package config holds every setting of the program. The struct tags of
// [Config] are the one table from which the flags, the environment variables,
// the keys of the YAML file, `config print` and docs/config.md are made:
//
//	key      name in the file; nested structs are joined by a dot
//	default  the value when nothing is said, in the notation of the file
//	min max  the range that is accepted, both ends included
//	oneof    the words that are accepted, separated by commas
//	unit     what a bare number counts
//	doc      one line for people
//
// Flags win over the environment, the environment over the file, the file over
// the defaults. A name that is not in the table is an error wherever it stands.
//
// Only the composition root and the commands read the configuration; every other
// package is handed its own small Config. This package opens the configuration
// file and nothing else.
package config

import (
	"log/slog"
	"net/netip"
	"time"
)

// Config is the whole configuration. DefaultConfig gives the defaults, Load the
// effective one; a Config is a plain value and safe to copy.
type Config struct {
	Listen      string `key:"listen" default:"127.0.0.1:8080" doc:"address of the public API"`
	AdminListen string `key:"admin_listen" default:"127.0.0.1:9090" doc:"address of metrics, health and administration; keep it private"`
	DataDir     string `key:"data_dir" default:"./likewise-data" doc:"directory of the store and of generated keys; one server at a time"`
	Ledger      URLs   `key:"ledger" default:"pebble" doc:"where likes are kept: pebble, the store in data_dir; or postgres://user@host:5432/database, which several nodes share. Several such URLs, separated by commas, are shards of one ledger, and their number is fixed at the first start"`
	Redis       URL    `key:"redis" doc:"the Redis, version 7 or later, that nodes of a shared ledger have in common for counts, live totals and limits: redis://user:password@host:6379/0, or rediss:// for TLS. Several host:port separated by commas are nodes of one Redis Cluster; empty = none"`
	Role        string `key:"role" default:"all" oneof:"all,api,aggregator,reconciler" doc:"which part of the service this process is: all; api serves users, and leaves the rest to others; aggregator brings totals up to date; reconciler audits in the background. The last two have the admin listener only. Parts other than all need a ledger that processes share"`

	JWKS           string         `key:"jwks" doc:"file or URL of the public keys that sign tokens (RS256, ES256, EdDSA)"`
	CursorKeyFile  string         `key:"cursor_key_file" doc:"file with the key that authenticates list cursors; empty = derived from the token secret, or generated in data_dir. Share it between nodes"`
	AnonymousReads bool           `key:"anonymous_reads" default:"true" doc:"let requests without a token read"`
	CORSOrigins    []string       `key:"cors_origins" doc:"origins whose pages may call the API, such as https://example.org; * = any"`
	TrustedProxies []netip.Prefix `key:"trusted_proxies" doc:"networks whose X-Forwarded-For is believed; empty = nobody's"`

	Pprof         bool   `key:"pprof" default:"false" doc:"serve profiles on the admin listener"`
	TraceEndpoint string `key:"trace_endpoint" doc:"URL that takes traces as OTLP over HTTP; empty = no traces"`
	MemoryLimit   Bytes  `key:"memory_limit" default:"0" max:"1PiB" doc:"soft limit of the Go heap; 0 = from the container's limit. GOMEMLIMIT wins over it"`

	JWT      JWT      `key:"jwt"`
	Limits   Limits   `key:"limits"`
	Pebble   Pebble   `key:"pebble"`
	Postgres Postgres `key:"postgres"`
	Shared   Shared   `key:"shared"`
	Counts   Counts   `key:"counts"`
	Live     Live     `key:"live"`
	Audit    Audit    `key:"audit"`
	Mirror   Mirror   `key:"mirror"`
	Log      Log      `key:"log"`
}

// Embedded reports whether the ledger is the store in DataDir, which belongs to one
// process; otherwise Ledger lists the databases of a shared one, a URL for each shard.
func (c Config) Embedded() bool { return len(c.Ledger) == 1 && c.Ledger[0] == embedded }

// JWT says which tokens are accepted.
type JWT struct {
	SecretFile string        `key:"secret_file" doc:"file with the HS256 secret of at least 32 bytes; empty and no jwks = generated in data_dir"`
	Issuer     string        `key:"issuer" doc:"the iss that tokens must have; empty = any"`
	Audience   string        `key:"audience" doc:"the aud that tokens must have; empty = any"`
	Leeway     time.Duration `key:"leeway" default:"30s" min:"0s" max:"60s" doc:"clock difference that exp and nbf allow for"`

	JWKSRefresh time.Duration `key:"jwks_refresh" default:"5m" min:"1m" max:"24h" doc:"time between two readings of jwks; an unknown key is looked for once a minute at most"`
	JWKSMaxAge  time.Duration `key:"jwks_max_age" default:"24h" min:"0s" max:"8760h" doc:"time after which keys that could not be read again do not count: requests with their tokens get 503. The server is not ready from nine tenths of it on; 0s = keys count for ever"`
}

// Limits bounds what one caller may take. The limits of list lengths are part of
// the API's contract, so that they can be lowered but not raised.
type Limits struct {
	UserRate      float64 `key:"user_rate" default:"5" min:"0" max:"1000000" unit:"likes/s" doc:"likes and unlikes of one user; 0 = no limit"`
	UserBurst     int     `key:"user_burst" default:"10" min:"1" max:"1000000" unit:"likes" doc:"likes of one user that may come at once"`
	UserReadRate  float64 `key:"user_read_rate" default:"100" min:"0" max:"1000000" unit:"requests/s" doc:"reads of one user; 0 = no limit. Tokens with the scope likes:write:any have none"`
	UserReadBurst int     `key:"user_read_burst" default:"200" min:"1" max:"1000000" unit:"requests" doc:"reads of one user that may come at once"`
	AddressRate   float64 `key:"address_rate" default:"200" min:"0" max:"1000000" unit:"requests/s" doc:"requests without a token from one address; 0 = no limit"`
	AddressBurst  int     `key:"address_burst" default:"400" min:"1" max:"1000000" unit:"requests" doc:"requests without a token from one address that may come at once"`

	MaxConnections           int   `key:"max_connections" default:"20000" min:"1" max:"10000000" unit:"connections" doc:"open connections to the public API"`
	MaxConnectionsPerAddress int   `key:"max_connections_per_address" default:"0" min:"0" max:"10000000" unit:"connections" doc:"open connections from one address; 0 = no limit of its own, as is right behind a proxy"`
	MaxURLBytes              Bytes `key:"max_url_bytes" default:"8KiB" min:"1KiB" max:"1MiB" doc:"size of a URL; longer ones get 414"`
	MaxHeaderBytes           Bytes `key:"max_header_bytes" default:"16KiB" min:"4KiB" max:"1MiB" doc:"size of a request's first line and headers that is always taken; from 4KiB more on the answer is a bare 431"`
	MaxBodyBytes             Bytes `key:"max_body_bytes" default:"1MiB" min:"1KiB" max:"64MiB" doc:"size of a request's body"`

	ReadHeaderTimeout time.Duration `key:"read_header_timeout" default:"5s" min:"100ms" max:"5m" doc:"time to send the headers"`
	ReadTimeout       time.Duration `key:"read_timeout" default:"15s" min:"100ms" max:"1h" doc:"time to send a whole request, and for a body from when it is read on"`
	RequestTimeout    time.Duration `key:"request_timeout" default:"10s" min:"100ms" max:"5m" doc:"time to work on a request to the public API, from its headers on"`
	WriteTimeout      time.Duration `key:"write_timeout" default:"1m" min:"1s" max:"1h" doc:"time for a whole request to the public API, with a client that reads the answer slowly; streams have live.write_timeout"`
	IdleTimeout       time.Duration `key:"idle_timeout" default:"2m" min:"1s" max:"24h" doc:"time that an unused connection is kept"`
	ShutdownTimeout   time.Duration `key:"shutdown_timeout" default:"10s" min:"1s" max:"10m" doc:"time for a graceful shutdown"`
	DrainDelay        time.Duration `key:"drain_delay" default:"0s" min:"0s" max:"10m" doc:"time before a shutdown in which the server says that it is not ready and still serves; as long as a load balancer needs to notice"`

	BatchMaxCommands  int `key:"batch_max_commands" default:"1000" min:"1" max:"1000" unit:"commands" doc:"commands of one batch"`
	CountsMaxItems    int `key:"counts_max_items" default:"100" min:"1" max:"100" unit:"items" doc:"items of one counts request"`
	FriendsMax        int `key:"friends_max" default:"1000" min:"1" max:"1000" unit:"users" doc:"users of one friends question"`
	FriendsMaxLookups int `key:"friends_max_lookups" default:"20000" min:"1" max:"100000" unit:"lookups" doc:"items times users of one friends question"`
	PageMax           int `key:"page_max" default:"100" min:"1" max:"100" unit:"rows" doc:"longest page of a list"`
	PageDefault       int `key:"page_default" default:"50" min:"1" max:"100" unit:"rows" doc:"page of a list when the request names no limit"`
}

// Pebble sizes the embedded store.
type Pebble struct {
	CacheBytes       Bytes         `key:"cache_bytes" default:"32MiB" min:"1MiB" max:"1TiB" doc:"cache of stored blocks"`
	MemtableBytes    Bytes         `key:"memtable_bytes" default:"8MiB" min:"1MiB" max:"1GiB" doc:"newest writes held in memory before they are sorted into files"`
	FilterBytes      Bytes         `key:"filter_bytes" default:"32MiB" min:"0" max:"1TiB" doc:"filter that spares new likes a read of the store; 2 bytes for each like kept work best, 0 does without"`
	QueueLength      int           `key:"queue_length" default:"16384" min:"1" max:"1000000" unit:"commands" doc:"commands that may wait; more are refused with 503"`
	QueueAge         time.Duration `key:"queue_age" default:"1s" min:"1ms" max:"1m" doc:"longest wait of a command; older ones are refused with 503"`
	DiskReserveBytes Bytes         `key:"disk_reserve_bytes" default:"0" max:"1PiB" doc:"free space below which writes are refused; 0 = 5 % of the disk, at most 1GiB"`
	AcceptRollback   bool          `key:"accept_rollback" default:"false" doc:"start although the store lacks writes that it had acknowledged; for one start, after reading why"`
}

// Postgres says how a node uses the databases of a shared ledger.
type Postgres struct {
	Replicas       URLs          `key:"replicas" doc:"streaming replicas of the databases of ledger, as URLs in any order; reads that may go there do, and see what was acknowledged before"`
	Writers        int           `key:"writers" default:"4" min:"1" max:"64" unit:"transactions" doc:"transactions of likes that a node has under way at once in each database"`
	BatchCommands  int           `key:"batch_commands" default:"500" min:"1" max:"1000" unit:"commands" doc:"commands of one transaction"`
	BatchWait      time.Duration `key:"batch_wait" default:"2ms" min:"0s" max:"5ms" doc:"time that a transaction waits for more commands"`
	QueueLength    int           `key:"queue_length" default:"16384" min:"1000" max:"1000000" unit:"commands" doc:"commands that may wait for each database; more are refused with 503"`
	QueueAge       time.Duration `key:"queue_age" default:"1s" min:"1ms" max:"1m" doc:"longest wait of a command, also while the database is away; older ones are refused with 503"`
	DrainInterval  time.Duration `key:"drain_interval" default:"250ms" min:"10ms" max:"10s" doc:"time between two rounds that bring totals up to date; they lag by about that much"`
	MaxConnections int           `key:"max_connections" default:"16" min:"3" max:"10000" unit:"connections" doc:"connections of a node to each database and replica; at least two more than writers. A standstill takes one more"`
	PgBouncer      bool          `key:"pgbouncer" default:"false" doc:"the URLs lead to PgBouncer in transaction mode"`
	AcceptUnsafe   bool          `key:"accept_unsafe" default:"false" doc:"start although fsync, full_page_writes or synchronous_commit is off in a database, so that it can lose acknowledged likes"`
}

// Shared says how a node uses Redis.
type Shared struct {
	Prefix   string        `key:"prefix" default:"likewise" doc:"begins the name of every key and channel in Redis; installations that share a Redis need one each"`
	TotalTTL time.Duration `key:"total_ttl" default:"2s" min:"100ms" max:"24h" doc:"time that Redis keeps a total which nobody renews; for so long a number may be old when a node dies before it could tell Redis the new one"`
	Timeout  time.Duration `key:"timeout" default:"50ms" min:"1ms" max:"10s" doc:"time for one call to Redis; after it the node goes on without"`
}

// Counts sizes the cache of totals.
type Counts struct {
	CacheItems   int           `key:"cache_items" default:"100000" min:"1" max:"1000000000" unit:"items" doc:"totals kept in memory"`
	RefreshAfter time.Duration `key:"refresh_after" default:"1s" min:"1ms" max:"1h" doc:"age from which a total is read again, while the old one is still answered"`
	LoadTimeout  time.Duration `key:"load_timeout" default:"1s" min:"1ms" max:"1m" doc:"time to read totals from the store; a slower read has failed"`
	MaxLoads     int           `key:"max_loads" default:"64" min:"1" max:"10000" unit:"reads" doc:"reads of totals that may be under way at the store, or at each database"`
	ExpireAfter  time.Duration `key:"expire_after" default:"1m" min:"1ms" max:"24h" doc:"age up to which a total is answered while the store cannot be read"`
}

// Live says how often watched numbers move, and bounds those who watch them.
type Live struct {
	Interval             time.Duration `key:"interval" default:"1s" min:"10ms" max:"1m" doc:"time between two changes of a watched number"`
	Heartbeat            time.Duration `key:"heartbeat" default:"15s" min:"1s" max:"10m" doc:"time between two signs of life on a stream"`
	WriteTimeout         time.Duration `key:"write_timeout" default:"5s" min:"100ms" max:"5m" doc:"time that a client has to take an event before it is cut off"`
	DrainSpread          time.Duration `key:"drain_spread" default:"10s" min:"0s" max:"10m" doc:"time over which clients come back after a shutdown"`
	MaxItems             int           `key:"max_items" default:"50" min:"1" max:"50" unit:"items" doc:"items of one stream"`
	MaxStreams           int           `key:"max_streams" default:"15000" min:"1" max:"10000000" unit:"streams" doc:"open streams; more are refused with 503. Keep it below limits.max_connections"`
	MaxStreamsPerUser    int           `key:"max_streams_per_user" default:"5" min:"0" max:"10000000" unit:"streams" doc:"open streams of one user; 0 = no limit"`
	MaxStreamsPerAddress int           `key:"max_streams_per_address" default:"20" min:"0" max:"10000000" unit:"streams" doc:"open streams without a token from one address; 0 = no limit"`
}

// Audit says how the totals are compared with the facts in the background.
type Audit struct {
	Every      time.Duration `key:"every" default:"24h" min:"0s" max:"8760h" doc:"time between two audits of everything; 0s = only when asked"`
	MaxRepairs int           `key:"max_repairs" default:"1000" min:"1" max:"1000000000" unit:"items" doc:"items that an audit may correct; one more ends it, because so much drift needs a person"`
	Share      float64       `key:"share" default:"0.5" min:"0.01" max:"1" doc:"part of the time that an audit of everything may work; it pauses for the rest"`
}

// Log says what is logged and how.
type Log struct {
	Level  slog.Level `key:"level" default:"info" doc:"least severity that is logged: debug, info, warn or error"`
	Format string     `key:"format" default:"auto" oneof:"auto,text,json" doc:"form of a log line; auto = text on a terminal, else json"`
}

// DefaultConfig returns the configuration in which nothing was said.
func DefaultConfig() Config {
	var c Config
	for _, s := range settings {
		if err := s.set(&c, s.def); err != nil {
			panic("config: default of " + s.key + ": " + err.Error())
		}
	}
	return c
}
