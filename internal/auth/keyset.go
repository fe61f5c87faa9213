package auth

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/MicahParks/jwkset"
)

// The algorithms that tokens may be signed with.
const (
	algHS256 = "HS256"
	algRS256 = "RS256"
	algES256 = "ES256"
	algEdDSA = "EdDSA"
)

// RSA keys outside these sizes are too weak, or too slow to check for everybody.
const (
	minRSABits = 2048
	maxRSABits = 8192
)

// keyID finds a key. The algorithm is the one pinned to the key when it was
// loaded, so a header with another algorithm finds nothing.
type keyID struct{ alg, kid string }

// keySet is one loaded key set. It does not change.
type keySet struct {
	raw  []byte
	keys map[keyID]any
}

// find returns the key of an id. A token without a key id is given the key of a
// set that has only one.
func (s *keySet) find(id keyID) (any, bool) {
	if id.kid == "" && len(s.keys) == 1 {
		for only, key := range s.keys {
			return key, only.alg == id.alg
		}
	}
	key, ok := s.keys[id]
	return key, ok
}

// parseKeySet reads a JSON Web Key Set (RFC 7517). Keys for other purposes,
// algorithms or curves are left out, as section 5 asks; a set without any usable
// key, or with two keys of one name, is refused as a whole.
func parseKeySet(raw []byte) (*keySet, error) {
	var document struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(raw, &document); err != nil {
		return nil, fmt.Errorf("JWKS is not a key set: %w", err)
	}
	set := &keySet{raw: raw, keys: make(map[keyID]any)}
	for _, text := range document.Keys {
		jwk, err := jwkset.NewJWKFromRawJSON(text, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{})
		if err != nil {
			continue
		}
		alg := pinnedAlg(jwk)
		if alg == "" {
			continue
		}
		id := keyID{alg: alg, kid: jwk.Marshal().KID}
		if _, twice := set.keys[id]; twice {
			return nil, fmt.Errorf("JWKS has two %s keys with the id %q", id.alg, id.kid)
		}
		set.keys[id] = jwk.Key()
	}
	if len(set.keys) == 0 {
		return nil, errors.New("JWKS has no usable RS256, ES256 or EdDSA key")
	}
	return set, nil
}

// pinnedAlg returns the one algorithm that a key may be used with, or "" for a
// key that is not for verifying our tokens.
func pinnedAlg(jwk jwkset.JWK) string {
	m := jwk.Marshal()
	if m.USE != "" && m.USE != jwkset.UseSig || len(m.KID) > maxKidBytes {
		return ""
	}
	if len(m.KEYOPS) > 0 && !slices.Contains(m.KEYOPS, jwkset.KeyOpsVerify) {
		return ""
	}
	var alg string
	switch key := jwk.Key().(type) {
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits >= minRSABits && bits <= maxRSABits {
			alg = algRS256
		}
	case *ecdsa.PublicKey:
		if key.Curve == elliptic.P256() {
			alg = algES256
		}
	case ed25519.PublicKey:
		alg = algEdDSA
	}
	if m.ALG != "" && m.ALG.String() != alg {
		return ""
	}
	return alg
}
