package server

import (
	"cmp"
	"net"
	"time"

	"likewise/internal/config"
	"likewise/internal/like"
	"likewise/internal/transfer"
)

// clientTokenTTL is the life of a token that a command makes for itself; the
// longest import has to end within it.
const clientTokenTTL = 24 * time.Hour

// Public returns the server's public listener for a command; url and token, where
// not empty, replace those of the configuration.
func Public(cfg config.Config, url, token string, scopes ...string) (*transfer.Remote, error) {
	return remote(cfg, cmp.Or(url, localURL(cfg.Listen)), token, scopes)
}

// Admin is [Public] for the admin listener.
func Admin(cfg config.Config, url, token string, scopes ...string) (*transfer.Remote, error) {
	return remote(cfg, cmp.Or(url, localURL(cfg.AdminListen)), token, scopes)
}

func remote(cfg config.Config, url, token string, scopes []string) (*transfer.Remote, error) {
	r := &transfer.Remote{URL: url, Token: token}
	if token != "" || len(scopes) == 0 {
		return r, nil
	}
	var err error
	r.Token, err = Token(cfg, like.User("operator"), scopes, clientTokenTTL)
	return r, err
}

// localURL is how this machine reaches a listener.
func localURL(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); err != nil || host != "" && (ip == nil || !ip.IsUnspecified()) {
		return "http://" + listen
	}
	return "http://" + net.JoinHostPort("127.0.0.1", port)
}
