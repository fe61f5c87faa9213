package scenarios

import (
	"encoding/base64"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"likewise/test/harness"
)

// The documented limits.
const (
	userRate, userBurst       = 5, 10
	addressRate, addressBurst = 200, 400
)

const allowedOrigin = "https://app.example.org"

func withLimits(*testing.T) Options { return Options{Limits: true} }

func withOrigin(*testing.T) Options {
	return Options{Flags: []string{"--cors-origins", allowedOrigin}}
}

// most is how many of a stream of requests a token bucket lets pass.
func most(burst, rate int, took time.Duration) int {
	return burst + int(math.Ceil(took.Seconds()*float64(rate))) + 1
}

// storm likes 50 posts as one user at one instant and returns which were accepted,
// and the refusal that asks for the longest wait.
func (w *world) storm(user string, from int, header func(k int) http.Header) (accepted []harness.Item, longest *harness.Problem) {
	w.Helper()
	var mu sync.Mutex
	begin := time.Now()
	w.together(50, func(k int) error {
		p := w.post(from + k - 1)
		r := harness.Request{Method: http.MethodPut, Path: p.Path("like"), User: user, Header: header(k)}
		done := w.acks.Begin(user, p, true)
		res, err := w.client.Do(w.ctx, r)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if res.Status == http.StatusOK {
			done(true)
			accepted = append(accepted, p)
			return nil
		}
		problem := harness.ProblemOf(r, res)
		if res.Status != http.StatusTooManyRequests || problem.Code == "" || problem.RetryAfter() < 1 {
			return fmt.Errorf("%w with Retry-After %q, want a 429 as a problem document and whole seconds", problem, res.Header.Get("Retry-After"))
		}
		done(false)
		if longest == nil || problem.RetryAfter() > longest.RetryAfter() {
			longest = problem
		}
		return nil
	})
	took := time.Since(begin)
	if n, limit := len(accepted), most(userBurst, userRate, took); n < userBurst || n > limit || longest == nil {
		w.Fatalf("%d of 50 likes accepted in %v, want %d to %d and the others refused", n, took, userBurst, limit)
	}
	return accepted, longest
}

// retryAfter is B35: a refusal changes nothing and says when to come back.
func retryAfter(w *world) {
	u1, u2 := w.user(1), w.user(2)
	accepted, longest := w.storm(u1, 1, func(int) http.Header { return nil })
	w.like(u2, w.post(1))
	for k := 1; k <= 50; k++ {
		got := w.counts(u1, w.post(k))[0]
		if want := slices.Contains(accepted, w.post(k)); got.Mine() != want || k > 1 && got.Count != map[bool]int64{true: 1}[want] {
			w.Fatalf("%v reads %+v, accepted %v", w.post(k), got, want)
		}
	}
	<-time.After(time.Duration(longest.RetryAfter()) * time.Second)
	w.like(u1, w.post(99))
}

// forwardedHeaders is B36: addresses that a client writes are not believed.
func forwardedHeaders(w *world) {
	written := func(k int) http.Header {
		ip := fmt.Sprintf("203.0.113.%d", k%250)
		return http.Header{"X-Forwarded-For": {ip}, "X-Real-Ip": {ip}, "Forwarded": {"for=" + ip}}
	}
	w.storm(w.user(1), 1, func(int) http.Header { return nil })
	w.storm(w.user(2), 101, written)

	const reads = 10 * addressBurst
	status := make([]int, reads)
	begin := time.Now()
	w.parallel(reads, 16, func(k int) error {
		r := harness.Request{Method: http.MethodGet, Path: harness.CountsPath(w.post(1)), Header: written(k)}
		res, err := w.client.Do(w.ctx, r)
		status[k-1] = res.Status
		return err
	})
	passed := reads - len(slices.DeleteFunc(status, func(s int) bool { return s == http.StatusOK }))
	// Each node has buckets of its own for addresses.
	if limit := len(w.target.URLs) * most(addressBurst, addressRate, time.Since(begin)); passed > limit {
		w.Fatalf("%d of %d reads passed the limit of one address, want at most %d", passed, reads, limit)
	}
	if slices.ContainsFunc(status, func(s int) bool { return s != 0 && s != http.StatusOK && s != http.StatusTooManyRequests }) {
		w.Fatal("a read was answered neither 200 nor 429")
	}
}

// namedUser is B37: the user is the one of the token; another name is refused.
func namedUser(w *world) {
	u1, u2, p1, p2 := w.user(1), w.user(2), w.post(1), w.post(2)
	w.like(u2, p2)
	body := map[string]string{"user_id": u2, "user": u2, "userName": u2}
	for _, c := range []struct{ method, path string }{{http.MethodPut, p1.Path("like")}, {http.MethodDelete, p2.Path("like")}} {
		for _, r := range []harness.Request{
			{Body: body},
			{Body: map[string]string{"user": u2}},
			{Path: "?user=" + u2},
			{Path: "?user_id=" + u2},
			{Header: http.Header{"X-User-Id": {u2}}},
		} {
			r.Method, r.Path, r.User = c.method, c.path+r.Path, u1
			w.wantProblem(r, http.StatusBadRequest)
		}
	}
	w.wantLikers(p1)
	w.wantLikers(p2, u2)
	w.wantMine(u2, p1, false)
}

// brokenTokens is B38: only a token that was signed for now is a user.
func brokenTokens(w *world) {
	good := w.target.Keys.Token(w.user(1), "")
	head, rest, _ := strings.Cut(good, ".")
	payload, signature, _ := strings.Cut(rest, ".")
	claims := func(change jwt.MapClaims) string {
		c := w.target.Keys.Claims(w.user(1), "")
		for name, value := range change {
			if c[name] = value; value == nil {
				delete(c, name)
			}
		}
		return w.target.Keys.Sign(c)
	}
	header := func(h string) string { return base64.RawURLEncoding.EncodeToString([]byte(h)) }
	now := time.Now()
	bad := map[string]string{
		"no signature":          head + "." + payload + ".",
		"two parts":             head + "." + payload,
		"one part":              "token",
		"empty":                 "",
		"another signature":     head + "." + payload + "." + flip(signature),
		"another payload":       head + "." + flip(payload) + "." + signature,
		"expired an hour ago":   claims(jwt.MapClaims{"exp": now.Add(-time.Hour).Unix()}),
		"expired 70 s ago":      claims(jwt.MapClaims{"exp": now.Add(-70 * time.Second).Unix()}),
		"valid in an hour":      claims(jwt.MapClaims{"nbf": now.Add(time.Hour).Unix()}),
		"valid in 70 s":         claims(jwt.MapClaims{"nbf": now.Add(70 * time.Second).Unix()}),
		"no exp":                claims(jwt.MapClaims{"exp": nil}),
		"exp as text":           claims(jwt.MapClaims{"exp": "tomorrow"}),
		"no sub":                claims(jwt.MapClaims{"sub": nil}),
		"empty sub":             claims(jwt.MapClaims{"sub": ""}),
		"sub as number":         claims(jwt.MapClaims{"sub": 7}),
		"sub too long":          claims(jwt.MapClaims{"sub": strings.Repeat("u", 129)}),
		"sub with a line break": claims(jwt.MapClaims{"sub": "u\n1"}),
		"unknown crit":          header(`{"alg":"HS256","crit":["x"],"x":1}`) + "." + payload + "." + signature,
	}
	for _, alg := range []string{"none", "None", "nOnE", "NONE", "HS512", "RS256", ""} {
		h := header(fmt.Sprintf(`{"alg":%q,"typ":"JWT"}`, alg))
		bad["alg "+alg] = h + "." + payload + "."
		bad["signed alg "+alg] = h + "." + payload + "." + signature
	}
	for what, token := range bad {
		w.wantUnauthorized(what, "Bearer "+token)
	}
	w.wantUnauthorized("Bearer alone", "Bearer")
	w.wantUnauthorized("another scheme", "Basic dTpw")
	w.wantUnauthorized("no scheme", good)

	for _, r := range []harness.Request{
		{Method: http.MethodPut, Path: w.post(1).Path("like")},
		{Method: http.MethodPut, Path: w.post(1).Path("like") + "?access_token=" + good},
		{Method: http.MethodGet, Path: harness.CountsPath(w.post(1)) + "&access_token=" + good},
	} {
		w.wantProblem(r, http.StatusUnauthorized)
	}
	w.wantCount(w.post(1), 0)
	w.wantPreflight()
}

// flip changes one bit in the middle of base64 text.
func flip(s string) string {
	b := []byte(s)
	if k := len(b) / 2; b[k] == 'A' {
		b[k] = 'B'
	} else {
		b[k] = 'A'
	}
	return string(b)
}

// wantUnauthorized wants a write and a read with this header to be refused.
func (w *world) wantUnauthorized(what, authorization string) {
	w.Helper()
	p := w.post(1)
	for _, r := range []harness.Request{
		{Method: http.MethodPut, Path: p.Path("like")},
		{Method: http.MethodDelete, Path: p.Path("like")},
		{Method: http.MethodGet, Path: harness.CountsPath(p)},
		{Method: http.MethodGet, Path: "/v1/me/likes"},
	} {
		r.Header = http.Header{"Authorization": {authorization}}
		res, err := w.client.Do(w.ctx, r)
		w.must(err)
		if p := harness.ProblemOf(r, res); res.Status != http.StatusUnauthorized || p.Code == "" ||
			res.Header.Get("WWW-Authenticate") == "" {
			w.Errorf("token %q: %v, WWW-Authenticate %q, want 401", what, p, res.Header.Get("WWW-Authenticate"))
		}
	}
}

// wantPreflight wants a browser on an allowed origin to be let in, and no other.
func (w *world) wantPreflight() {
	w.Helper()
	ask := func(origin, method string) harness.Response {
		res, err := w.client.Do(w.ctx, harness.Request{
			Method: http.MethodOptions, Path: w.post(1).Path("like"),
			Header: http.Header{
				"Origin":                         {origin},
				"Access-Control-Request-Method":  {method},
				"Access-Control-Request-Headers": {"authorization"},
			},
		})
		w.must(err)
		return res
	}
	for _, method := range []string{http.MethodPut, http.MethodDelete} {
		res := ask(allowedOrigin, method)
		allowed := res.Header.Get("Access-Control-Allow-Methods")
		if res.Status/100 != 2 || res.Header.Get("Access-Control-Allow-Origin") != allowedOrigin ||
			!strings.Contains(allowed, http.MethodPut) || !strings.Contains(allowed, http.MethodDelete) ||
			!strings.Contains(strings.ToLower(res.Header.Get("Access-Control-Allow-Headers")), "authorization") {
			w.Fatalf("preflight for %s: %d %v", method, res.Status, res.Header)
		}
		if got := ask("https://evil.example", method).Header.Get("Access-Control-Allow-Origin"); got != "" {
			w.Fatalf("a strange origin is allowed as %q", got)
		}
	}
}
