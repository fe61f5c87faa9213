package server

import (
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"likewise/internal/auth"
	"likewise/internal/config"
	"likewise/internal/like"
)

const (
	tokenKeyFile  = "token.key"
	cursorKeyFile = "cursor.key"
	cursorKeyUse  = "likewise list cursors, version 1"
)

// keys is everything secret that a server needs.
type keys struct {
	auth   auth.Config
	cursor []byte
}

// loadKeys reads the keys, and makes those that belong to the data directory and
// do not exist yet.
func loadKeys(cfg config.Config) (k keys, err error) {
	if k.auth, err = authConfig(cfg, auth.LoadOrCreateKey); err != nil {
		return k, err
	}
	switch {
	case cfg.CursorKeyFile != "":
		k.cursor, err = auth.LoadSecret(cfg.CursorKeyFile)
	case k.auth.Secret != nil:
		k.cursor, err = hkdf.Key(sha256.New, k.auth.Secret, nil, cursorKeyUse, sha256.Size)
	default:
		k.cursor, err = auth.LoadOrCreateKey(filepath.Join(cfg.DataDir, cursorKeyFile))
	}
	return k, named("cursor key", err)
}

// authConfig says which tokens are accepted; own reads the key of the data
// directory, which counts when the configuration names no other.
func authConfig(cfg config.Config, own func(path string) ([]byte, error)) (auth.Config, error) {
	to := auth.DefaultConfig()
	to.JWKS = cfg.JWKS
	to.Issuer, to.Audience, to.Leeway = cfg.JWT.Issuer, cfg.JWT.Audience, cfg.JWT.Leeway
	to.Refresh, to.MaxAge = cfg.JWT.JWKSRefresh, cfg.JWT.JWKSMaxAge
	var err error
	switch {
	case cfg.JWT.SecretFile != "":
		to.Secret, err = auth.LoadSecret(cfg.JWT.SecretFile)
	case cfg.JWKS == "":
		to.Secret, err = own(filepath.Join(cfg.DataDir, tokenKeyFile))
	}
	return to, err
}

// Token signs a token with the key that the server of this configuration uses. It
// makes no key: without one there is no server that would accept the token.
func Token(cfg config.Config, user like.User, scopes []string, ttl time.Duration) (string, error) {
	from, err := authConfig(cfg, func(path string) ([]byte, error) {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: there is no key in %s; start `likewise serve` there once, or name the server's directory with --data-dir "+
				"or its secret with --jwt-secret-file", like.ErrNotFound, cfg.DataDir)
		}
		return auth.LoadOrCreateKey(path)
	})
	if err != nil {
		return "", err
	}
	if from.Secret == nil {
		return "", fmt.Errorf("%w: tokens are checked with %s, whose private key is elsewhere; get a token where yours are made", like.ErrInvalid, cfg.JWKS)
	}
	return auth.Sign(from, user, scopes, ttl)
}
