package auth

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"likewise/internal/like"
)

// Sign returns a token, signed with cfg.Secret and made for its issuer and
// audience, with which user may act for ttl from now (at least a second).
// Without a secret, a valid user, or with a scope not in [Scopes] it fails with
// [like.ErrInvalid].
func Sign(cfg Config, user like.User, scopes []string, ttl time.Duration) (string, error) {
	if len(cfg.Secret) < MinSecretBytes {
		return "", fmt.Errorf("%w: no secret of at least %d bytes to sign tokens with", like.ErrInvalid, MinSecretBytes)
	}
	if err := user.Validate(); err != nil {
		return "", err
	}
	for _, scope := range scopes {
		if !slices.Contains(Scopes(), scope) {
			return "", fmt.Errorf("%w: unknown scope %q, want %s", like.ErrInvalid, scope, strings.Join(Scopes(), ", "))
		}
	}
	if ttl < time.Second {
		return "", fmt.Errorf("%w: token lifetime is shorter than a second", like.ErrInvalid)
	}
	now := time.Now()
	claims := jwt.MapClaims{"sub": string(user), "iat": now.Unix(), "exp": now.Add(ttl).Unix()}
	for name, value := range map[string]string{
		"scope": strings.Join(scopes, " "),
		"iss":   cfg.Issuer,
		"aud":   cfg.Audience,
	} {
		if value != "" {
			claims[name] = value
		}
	}
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(cfg.Secret)
	if err != nil {
		return "", fmt.Errorf("sign token: %w", err)
	}
	return token, nil
}
