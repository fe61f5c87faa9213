package auth

import (
	"testing"

	"github.com/golang-jwt/jwt/v5"
)

func BenchmarkVerify(b *testing.B) {
	cfg := testConfig()
	cfg.JWKS = writeFile(b, allKeys())
	claims := goodClaims()
	tokens := []struct{ alg, token string }{
		{algHS256, sign(jwt.SigningMethodHS256, testSecret, claims, nil)},
		{algES256, sign(jwt.SigningMethodES256, ecKey(), claims, withKid("e"))},
		{algEdDSA, sign(jwt.SigningMethodEdDSA, edKey(), claims, withKid("d"))},
		{algRS256, sign(jwt.SigningMethodRS256, rsaKey(), claims, withKid("r"))},
	}
	for _, mode := range []struct {
		name   string
		tokens int
	}{{"cold", 0}, {"cached", 1000}} {
		cfg.CacheTokens = mode.tokens
		v := newVerifier(b, cfg)
		for _, tt := range tokens {
			b.Run(mode.name+"/"+tt.alg, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := v.Verify(b.Context(), tt.token); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
