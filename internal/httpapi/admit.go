package httpapi

import (
	"net/http"

	"likewise/internal/auth"
	"likewise/internal/limit"
)

// admit finds out who asks and whether they may. A request that tries to sign in
// and fails is refused, whatever it asks for.
func (s *site) admit(x *exchange, r *http.Request, a access) error {
	token, present, err := auth.BearerToken(r)
	if len(token) > auth.MaxTokenBytes {
		return refuse(headersTooLarge, "a token has at most %d bytes", auth.MaxTokenBytes)
	}
	if present && err == nil {
		if x.identity, x.known = s.auth.Known(token); !x.known {
			// An address that used up its limit costs no more checks of signatures.
			if over := s.mayFail(x, r); over != nil {
				return over
			}
			x.identity, err = s.auth.Verify(r.Context(), token)
			x.known = err == nil
		}
	}
	if !x.known {
		return s.admitUnknown(x, r, a, err)
	}
	if a.scope != "" && !x.identity.Has(a.scope) {
		return s.refuseScope(x, a.scope)
	}
	switch {
	case a.write:
		return take(x, r, s.userLimit, "user", string(x.identity.User))
	case a.system || x.identity.Has(auth.ScopeWriteAny):
		return nil // a trusted backend reads for many
	}
	return take(x, r, s.readLimit, "reads", string(x.identity.User))
}

// mayFail refuses an address that has nothing left to be charged with.
func (s *site) mayFail(x *exchange, r *http.Request) error {
	if s.addressLimit == nil {
		return nil
	}
	d, err := s.addressLimit.Peek(r.Context(), s.address(r))
	if err != nil || d.OK {
		return nil
	}
	return overLimit(x, d, "address")
}

// address is the key of a request's limit without a valid token.
func (s *site) address(r *http.Request) string {
	return limit.Key(limit.ClientAddr(r, s.cfg.TrustedProxies))
}

// admitUnknown admits a request without a verified token; err says what was wrong
// with the one that it has.
func (s *site) admitUnknown(x *exchange, r *http.Request, a access, err error) error {
	if s.addressLimit != nil && (!a.system || err != nil) {
		if over := take(x, r, s.addressLimit, "address", s.address(r)); over != nil {
			return over
		}
	}
	switch {
	case err != nil:
		return err
	case a.token:
		return refuse(missingToken, "send Authorization: Bearer with a token")
	case !a.system && !s.cfg.AnonymousReads:
		return refuse(missingToken, "reading needs a token here")
	}
	return nil
}

func (s *site) refuseScope(x *exchange, scope string) error {
	x.Header().Set("WWW-Authenticate", `Bearer realm="likewise", error="insufficient_scope", scope="`+scope+`"`)
	return refuse(missingScope, "the token lacks the scope %s", scope)
}

// take asks a limiter for one request. A limiter that cannot tell lets it pass: it
// protects the store, which has a bound of its own.
func take(x *exchange, r *http.Request, l limit.Limiter, policy, key string) error {
	if l == nil {
		return nil
	}
	d, err := l.Allow(r.Context(), key)
	if err != nil {
		return nil
	}
	if !d.OK {
		return overLimit(x, d, policy)
	}
	d.WriteHeader(x.Header(), policy)
	return nil
}

func overLimit(x *exchange, d limit.Decision, policy string) error {
	d.WriteHeader(x.Header(), policy)
	return refuse(rateLimited, "try again in %d s", d.RetryAfter)
}
