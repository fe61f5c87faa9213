package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Validate reports every setting that cannot work, one a line, each with its
// name, its value and what to do.
func (c Config) Validate() error {
	var errs []error
	for i := range settings {
		s := &settings[i]
		if err := s.checkRange(&c); err != nil {
			errs = append(errs, fmt.Errorf("%s: %s is %w", s.key, s.text(&c), err))
		}
		if words := s.oneof; words != nil && !slices.Contains(words, s.text(&c)) {
			errs = append(errs, fmt.Errorf("%s: %q is unknown; use one of %s", s.key, s.masked(&c), strings.Join(words, ", ")))
		}
	}
	return errors.Join(append(errs,
		checkAddress("listen", c.Listen), checkAddress("admin_listen", c.AdminListen),
		c.checkShape(), c.checkMirror(), c.checkURLs(), c.checkOrigins(), c.checkPairs())...)
}

// checkRange compares the value with the tags min and max.
func (s *setting) checkRange(c *Config) error {
	switch v := s.field(c).(type) {
	case *int:
		return within(s, *v)
	case *float64:
		return within(s, *v)
	case *Bytes:
		return within(s, *v)
	case *time.Duration:
		return within(s, *v)
	}
	return nil
}

func within[T cmp.Ordered](s *setting, v T) error {
	for _, bound := range []struct {
		text, less string
		sign       int
	}{{s.min, "too small; the least is ", 1}, {s.max, "too large; the most is ", -1}} {
		var limit T
		if bound.text == "" {
			continue
		}
		if err := parse(any(&limit), bound.text); err != nil {
			panic("config: bound of " + s.key + ": " + err.Error())
		}
		if cmp.Compare(limit, v) == bound.sign {
			return errors.New(bound.less + bound.text)
		}
	}
	return nil
}

func checkAddress(key, address string) error {
	if _, port, err := net.SplitHostPort(address); err != nil || port == "" {
		return fmt.Errorf("%s: %q is not an address; write host:port, such as 127.0.0.1:8080 or :8080", key, maskURL(address))
	}
	return nil
}

func (c Config) checkURLs() error {
	var errs []error
	if strings.Contains(c.JWKS, "://") && !isHTTP(c.JWKS) {
		errs = append(errs, fmt.Errorf("jwks: %q is neither a file nor an http(s) URL; give the path of a file or a URL such as https://id.example.org/jwks.json", maskURL(c.JWKS)))
	}
	if c.TraceEndpoint != "" && !isHTTP(c.TraceEndpoint) {
		errs = append(errs, fmt.Errorf("trace_endpoint: %q is not an http(s) URL; write it such as http://127.0.0.1:4318, or leave it out for no traces", maskURL(c.TraceEndpoint)))
	}
	return errors.Join(errs...)
}

func isHTTP(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

func (c Config) checkOrigins() error {
	var errs []error
	for _, origin := range c.CORSOrigins {
		if u, err := url.Parse(origin); origin != "*" && (err != nil || !isHTTP(origin) || u.Scheme+"://"+u.Host != origin) {
			errs = append(errs, fmt.Errorf("cors_origins: %q is not an origin; write scheme and host only, such as https://example.org, one entry for each", maskURL(origin)))
		}
	}
	return errors.Join(errs...)
}

// checkPairs checks the settings that depend on one another.
func (c Config) checkPairs() error {
	var errs []error
	if c.Limits.PageDefault > c.Limits.PageMax {
		errs = append(errs, fmt.Errorf("limits.page_default: %d is above limits.page_max, %d; lower the one or raise the other", c.Limits.PageDefault, c.Limits.PageMax))
	}
	if c.Limits.MaxURLBytes > c.Limits.MaxHeaderBytes {
		errs = append(errs, fmt.Errorf("limits.max_url_bytes: %v is above limits.max_header_bytes, %v; lower the one or raise the other", c.Limits.MaxURLBytes, c.Limits.MaxHeaderBytes))
	}
	if c.Limits.RequestTimeout > c.Limits.WriteTimeout {
		errs = append(errs, fmt.Errorf("limits.request_timeout: %v is above limits.write_timeout, %v; lower the one or raise the other", c.Limits.RequestTimeout, c.Limits.WriteTimeout))
	}
	if c.Limits.ReadHeaderTimeout > c.Limits.ReadTimeout {
		errs = append(errs, fmt.Errorf("limits.read_header_timeout: %v is above limits.read_timeout, %v; lower the one or raise the other", c.Limits.ReadHeaderTimeout, c.Limits.ReadTimeout))
	}
	if c.JWT.JWKSMaxAge != 0 && c.JWT.JWKSMaxAge < 2*c.JWT.JWKSRefresh {
		errs = append(errs, fmt.Errorf("jwt.jwks_max_age: %v is below twice jwt.jwks_refresh, %v; raise the one or lower the other", c.JWT.JWKSMaxAge, c.JWT.JWKSRefresh))
	}
	if c.Postgres.MaxConnections < c.Postgres.Writers+2 {
		errs = append(errs, fmt.Errorf("postgres.max_connections: %d is not two above postgres.writers, %d; raise the one or lower the other", c.Postgres.MaxConnections, c.Postgres.Writers))
	}
	if c.Counts.RefreshAfter > c.Counts.ExpireAfter {
		errs = append(errs, fmt.Errorf("counts.refresh_after: %v is above counts.expire_after, %v; lower the one or raise the other", c.Counts.RefreshAfter, c.Counts.ExpireAfter))
	}
	if _, port, _ := net.SplitHostPort(c.Listen); c.Listen == c.AdminListen && port != "0" {
		errs = append(errs, fmt.Errorf("admin_listen: %q is also the address of listen; give it another port", c.AdminListen))
	}
	return errors.Join(errs...)
}
