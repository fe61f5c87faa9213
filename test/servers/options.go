package servers

// Option says how to start a server.
type Option func(*options)

type options struct {
	replicas bool
	settings []setting
	port     int // of the first server; 0: any
}

type setting struct{ name, value string }

func optionsOf(all []Option) options {
	var o options
	for _, set := range all {
		set(&o)
	}
	return o
}

// With gives the server a setting of its configuration file, such as
// "max_connections" or "maxmemory-policy".
func With(name, value string) Option {
	return func(o *options) { o.settings = append(o.settings, setting{name, value}) }
}

// WithReplicas starts a streaming replica of PostgreSQL, or one of every primary of
// a Redis Cluster.
func WithReplicas(o *options) { o.replicas = true }
