package server

import (
	"likewise/internal/config"
	"likewise/internal/counts"
	"likewise/internal/httpapi"
	"likewise/internal/ledger/pebble"
	"likewise/internal/ledger/postgres"
	"likewise/internal/limit"
	"likewise/internal/live"
	"likewise/internal/mirror"
	"likewise/internal/reconcile"
	"likewise/internal/redis"
)

// The functions of this file hand each package its own part of the configuration.

func connections(c config.Config) limit.ConnConfig {
	return limit.ConnConfig{
		Total: c.Limits.MaxConnections, PerAddress: c.Limits.MaxConnectionsPerAddress, Trusted: c.TrustedProxies,
	}
}

func userLimit(c config.Config) limit.Config {
	l := limit.DefaultUser()
	l.Rate, l.Burst = c.Limits.UserRate, c.Limits.UserBurst
	return l
}

func readLimit(c config.Config) limit.Config {
	l := limit.DefaultUser()
	l.Rate, l.Burst = c.Limits.UserReadRate, c.Limits.UserReadBurst
	return l
}

func addressLimit(c config.Config) limit.Config {
	l := limit.DefaultAddress()
	l.Rate, l.Burst = c.Limits.AddressRate, c.Limits.AddressBurst
	return l
}

func countsConfig(c config.Config) counts.Config {
	to := counts.DefaultConfig()
	to.Items = c.Counts.CacheItems
	to.RefreshAfter, to.ExpireAfter = c.Counts.RefreshAfter, c.Counts.ExpireAfter
	to.LoadTimeout, to.MaxLoads = c.Counts.LoadTimeout, c.Counts.MaxLoads
	return to
}

func liveConfig(c config.Config) live.Config {
	to := live.DefaultConfig()
	to.Interval, to.Heartbeat, to.WriteTimeout = c.Live.Interval, c.Live.Heartbeat, c.Live.WriteTimeout
	to.DrainSpread, to.MaxItems, to.MaxStreams = c.Live.DrainSpread, c.Live.MaxItems, c.Live.MaxStreams
	to.MaxPerUser, to.MaxPerAddress = c.Live.MaxStreamsPerUser, c.Live.MaxStreamsPerAddress
	to.Origins = c.CORSOrigins
	return to
}

func auditConfig(c config.Config) reconcile.Config {
	to := reconcile.DefaultConfig()
	to.Every, to.MaxRepairs, to.Share = c.Audit.Every, c.Audit.MaxRepairs, c.Audit.Share
	return to
}

func apiConfig(c config.Config) httpapi.Config {
	to := httpapi.DefaultConfig()
	to.AnonymousReads, to.CORSOrigins, to.TrustedProxies = c.AnonymousReads, c.CORSOrigins, c.TrustedProxies
	to.MaxURLBytes, to.MaxBodyBytes = int(c.Limits.MaxURLBytes), int64(c.Limits.MaxBodyBytes)
	to.BodyTimeout, to.RequestTimeout = c.Limits.ReadTimeout, c.Limits.RequestTimeout
	to.CountsMaxItems, to.FriendsMax = c.Limits.CountsMaxItems, c.Limits.FriendsMax
	to.FriendsMaxLookups = c.Limits.FriendsMaxLookups
	to.PageMax, to.PageDefault = c.Limits.PageMax, c.Limits.PageDefault
	to.BatchMaxCommands = c.Limits.BatchMaxCommands
	return to
}

func pebbleConfig(c config.Config) pebble.Config {
	to := pebble.DefaultConfig()
	to.CacheBytes = int64(c.Pebble.CacheBytes)
	to.MemtableBytes = uint64(c.Pebble.MemtableBytes)
	to.FilterBytes = int64(c.Pebble.FilterBytes)
	to.QueueLength, to.QueueAge = c.Pebble.QueueLength, c.Pebble.QueueAge
	to.DiskReserveBytes = uint64(c.Pebble.DiskReserveBytes)
	to.AcceptRollback = c.Pebble.AcceptRollback
	return to
}

// storeMemory is what an embedded store may take outside the Go heap: its cache, and
// four memtables at most.
func storeMemory(c config.Config) int64 {
	if !c.Embedded() {
		return 0
	}
	return int64(c.Pebble.CacheBytes + 4*c.Pebble.MemtableBytes)
}

func postgresConfig(c config.Config) postgres.Config {
	to := postgres.DefaultConfig()
	to.URLs, to.Replicas = plain(c.Ledger), plain(c.Postgres.Replicas)
	to.PgBouncer, to.AcceptUnsafe = c.Postgres.PgBouncer, c.Postgres.AcceptUnsafe
	to.Writers, to.MaxConnections = c.Postgres.Writers, c.Postgres.MaxConnections
	to.BatchCommands, to.BatchWait = c.Postgres.BatchCommands, c.Postgres.BatchWait
	to.QueueLength, to.QueueAge = c.Postgres.QueueLength, c.Postgres.QueueAge
	to.Drain, to.DrainInterval = dutiesOf(c).drain, c.Postgres.DrainInterval
	return to
}

func plain(urls config.URLs) []string {
	var texts []string
	for _, u := range urls {
		texts = append(texts, string(u))
	}
	return texts
}

func mirrorConfig(c config.Config) mirror.Config {
	to := mirror.DefaultConfig()
	to.Interval, to.Sweep, to.Share = c.Mirror.Interval, c.Mirror.Sweep, c.Mirror.Share
	to.Tables = map[string]mirror.Table{}
	for collection, t := range c.Mirror.Tables {
		to.Tables[collection] = mirror.Table{URL: string(t.URL), Name: t.Table, IDColumn: t.IDColumn, CountColumn: t.CountColumn}
	}
	return to
}

func redisConfig(c config.Config) redis.Config {
	to := redis.DefaultConfig()
	to.URL, to.Prefix = string(c.Redis), c.Shared.Prefix
	to.TTL, to.Timeout = c.Shared.TotalTTL, c.Shared.Timeout
	return to
}
