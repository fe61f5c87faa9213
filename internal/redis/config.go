package redis

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"likewise/internal/like"
)

// Config is where Redis is and how it is used.
type Config struct {
	// URL is redis://[user:password@]host:port[,host:port…][/db], or rediss:// for
	// TLS. Several addresses are nodes of one Redis Cluster; one address may be
	// either. User and password are percent-encoded.
	URL string
	// Prefix begins the name of every key and channel. Installations that share a
	// Redis need one each, because they have the same items.
	Prefix string
	// TTL is how long a total is kept that nobody confirms.
	TTL time.Duration
	// Timeout bounds a call that somebody waits for.
	Timeout time.Duration
}

// DefaultConfig returns the settings of a node that nobody tuned, without a URL.
func DefaultConfig() Config {
	return Config{Prefix: "likewise", TTL: 10 * time.Second, Timeout: 50 * time.Millisecond}
}

const (
	dialTimeout  = time.Second      // to connect, TLS and authentication included
	deadAfter    = time.Second      // without an answer a connection is closed
	topologyAge  = 10 * time.Second // after which the nodes of a cluster are asked for
	bufferBytes  = 32 << 10         // of each direction of a connection
	ringScale    = 8                // 2^8 calls wait on one connection
	maxPrefix    = 64
	defaultPort  = "6379"
	clientName   = "likewise"
	oneWire      = -1 // connections to a node, in the client's terms
	spareWires   = 4  // for commands that block, which are not used
	schemePlain  = "redis"
	schemeSecure = "rediss"
)

// options turns the settings into those of the client. Errors are
// [like.ErrInvalid] and do not contain the password.
func (c Config) options() (rueidis.ClientOption, error) {
	switch {
	case c.TTL < time.Millisecond:
		return rueidis.ClientOption{}, fmt.Errorf("%w: redis: time to keep totals must be at least 1ms", like.ErrInvalid)
	case c.Timeout <= 0:
		return rueidis.ClientOption{}, fmt.Errorf("%w: redis: timeout must be positive", like.ErrInvalid)
	case c.Prefix == "" || len(c.Prefix) > maxPrefix || strings.ContainsAny(c.Prefix, "{} \r\n"):
		return rueidis.ClientOption{}, fmt.Errorf("%w: redis: prefix must have 1 to %d bytes, without braces and spaces", like.ErrInvalid, maxPrefix)
	}
	o := rueidis.ClientOption{
		ClientName:         clientName,
		ClientSetInfo:      rueidis.DisableClientSetInfo,
		Dialer:             net.Dialer{Timeout: dialTimeout, KeepAlive: deadAfter},
		ConnWriteTimeout:   deadAfter,
		ReadBufferEachConn: bufferBytes, WriteBufferEachConn: bufferBytes,
		RingScaleEachConn: ringScale,
		PipelineMultiplex: oneWire,
		BlockingPoolSize:  spareWires,
		// A deadline then gives up a call and not the connection.
		AlwaysPipelining: true,
		DisableRetry:     true,
		DisableCache:     true,
		ClusterOption:    rueidis.ClusterOption{ShardsRefreshInterval: topologyAge, MaxMovedRedirections: 3},
	}
	return o, readURL(c.URL, &o)
}

// readURL does not use net/url for the whole, which knows one host only.
func readURL(text string, o *rueidis.ClientOption) error {
	scheme, rest, ok := strings.Cut(text, "://")
	switch {
	case ok && scheme == schemePlain:
	case ok && scheme == schemeSecure:
		o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	default:
		return badURL("must begin with redis:// or rediss://")
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		user, password, _ := strings.Cut(rest[:at], ":")
		var err1, err2 error
		o.Username, err1 = url.PathUnescape(user)
		o.Password, err2 = url.PathUnescape(password)
		if err1 != nil || err2 != nil {
			return badURL("user or password is not percent-encoded")
		}
		rest = rest[at+1:]
	}
	hosts, db, _ := strings.Cut(rest, "/")
	if db != "" {
		n, err := strconv.ParseUint(db, 10, 16)
		if err != nil {
			return badURL("what follows the addresses must be the number of a database, as in /0")
		}
		o.SelectDB = int(n)
	}
	for host := range strings.SplitSeq(hosts, ",") {
		addr, err := address(strings.TrimSpace(host))
		if err != nil {
			return err
		}
		o.InitAddress = append(o.InitAddress, addr)
	}
	if len(o.InitAddress) > 1 && o.SelectDB != 0 {
		return badURL("a Redis Cluster has database 0 only")
	}
	return nil
}

// address returns host:port; the port may be left out.
func address(text string) (string, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		host, port, err = net.SplitHostPort(text + ":" + defaultPort)
	}
	if err != nil || host == "" {
		return "", badURL("address must be host:port, and an IPv6 host in brackets")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", badURL("port must be from 1 to 65535")
	}
	return net.JoinHostPort(host, port), nil
}

func badURL(why string) error { return fmt.Errorf("%w: redis: URL: %s", like.ErrInvalid, why) }
