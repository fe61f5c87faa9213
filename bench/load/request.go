package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// requests makes the bytes of the n-th request. Safe for concurrent use.
type requests struct {
	cfg    config
	host   string // of the URL, also the address to connect to
	tokens []string
	run    string // prefix of names, so that a second run likes anew
}

func newRequests(cfg config) (*requests, error) {
	u, err := url.Parse(cfg.url)
	if err != nil || u.Scheme != "http" || u.Host == "" {
		return nil, fmt.Errorf("--url %q must be http://host:port", cfg.url)
	}
	if !slices.Contains([]string{"put", "batch", "counts"}, cfg.op) {
		return nil, fmt.Errorf("--op must be put, batch or counts, not %q", cfg.op)
	}
	if min(cfg.users, cfg.items, cfg.connections, cfg.page, cfg.batch) < 1 || cfg.rate < 0 {
		return nil, fmt.Errorf("numbers must be positive")
	}
	secret, err := os.ReadFile(cfg.secretFile)
	if err != nil {
		return nil, fmt.Errorf("--jwt-secret-file: %w", err)
	}
	r := &requests{cfg: cfg, host: u.Host, run: strconv.FormatUint(uint64(rand.Uint32()), 36)}
	senders, scope := cfg.users, ""
	if cfg.op == "batch" {
		senders, scope = 1, "likes:write:any" // one backend names all users
	}
	for k := range senders {
		claims := jwt.MapClaims{
			"sub": string(r.appendUser(nil, int64(k))), "scope": scope, "exp": time.Now().Add(24 * time.Hour).Unix(),
		}
		token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(bytes.TrimSpace(secret))
		if err != nil {
			return nil, fmt.Errorf("sign a token: %w", err)
		}
		r.tokens = append(r.tokens, token)
	}
	return r, nil
}

// append appends request n to b.
func (r *requests) append(b []byte, n int64) []byte {
	user := int(n % int64(len(r.tokens)))
	switch r.cfg.op {
	case "counts":
		b = append(b, "GET /v1/likes/counts?posts="...)
		for k := range r.cfg.page {
			if k > 0 {
				b = append(b, ',')
			}
			b = r.appendItem(b, rand.IntN(r.cfg.items))
		}
		return append(r.appendHead(append(b, " HTTP/1.1\r\n"...), user), noBody...)
	case "batch":
		b = r.appendHead(append(b, "POST /v1/likes:batch HTTP/1.1\r\n"...), user)
		return r.appendBatch(append(b, "Content-Type: application/json\r\n"...), n)
	}
	b = append(b, "PUT /v1/posts/"...)
	b = r.appendItem(b, r.itemOf(n))
	return append(r.appendHead(append(b, "/like HTTP/1.1\r\n"...), user), noBody...)
}

const noBody = "Content-Length: 0\r\n\r\n"

// appendBatch appends the length and the body of the n-th batch.
func (r *requests) appendBatch(b []byte, n int64) []byte {
	b = append(b, "Content-Length: "...)
	length := len(b)
	b = append(b, "00000000\r\n\r\n"...)
	body := len(b)
	b = append(b, `{"commands":[`...)
	for k := range int64(r.cfg.batch) {
		if k > 0 {
			b = append(b, ',')
		}
		like := n*int64(r.cfg.batch) + k
		b = append(b, `{"op":"like","collection":"posts","id":"`...)
		b = r.appendItem(b, r.itemOf(like))
		b = append(b, `","user":"`...)
		b = r.appendUser(b, like%int64(r.cfg.users))
		b = append(b, `"}`...)
	}
	b = append(b, "]}"...)
	copy(b[length:], fmt.Sprintf("%08d", len(b)-body))
	return b
}

// itemOf returns the item of the n-th like.
func (r *requests) itemOf(n int64) int {
	if r.cfg.hot > 0 && rand.Float64() < r.cfg.hot {
		return r.cfg.items // one more than the others
	}
	return int(n / int64(r.cfg.users) % int64(r.cfg.items))
}

func (r *requests) appendUser(b []byte, user int64) []byte {
	b = strconv.AppendInt(append(b, 'u'), user, 10)
	return append(append(b, '-'), r.run...)
}

func (r *requests) appendItem(b []byte, item int) []byte {
	b = append(b, 'p')
	b = strconv.AppendInt(b, int64(item), 10)
	b = append(b, '-')
	return append(b, r.run...)
}

func (r *requests) appendHead(b []byte, user int) []byte {
	b = append(b, "Host: "...)
	b = append(b, r.host...)
	b = append(b, "\r\nAuthorization: Bearer "...)
	b = append(b, r.tokens[user]...)
	return append(b, "\r\n"...)
}

// answer is what counts of a response.
type answer struct {
	status int
	length int
	hint   bool // has Retry-After
	closes bool // the server closes the connection behind it
}

// readHead parses the head of a response, which lines gives line by line.
func readHead(line func() (string, error)) (answer, error) {
	first, err := line()
	if err != nil {
		return answer{}, err
	}
	a := answer{length: -1}
	status, ok := strings.CutPrefix(first, "HTTP/1.1 ")
	if a.status, err = strconv.Atoi(status[:min(3, len(status))]); !ok || err != nil {
		return a, fmt.Errorf("status line %q", first)
	}
	for {
		text, err := line()
		if err != nil || text == "" {
			return a, err
		}
		name, value, _ := strings.Cut(text, ": ")
		switch {
		case strings.EqualFold(name, "Content-Length"):
			if a.length, err = strconv.Atoi(value); err != nil {
				return a, fmt.Errorf("content length %q", value)
			}
		case strings.EqualFold(name, "Retry-After"):
			a.hint = true
		case strings.EqualFold(name, "Connection"):
			a.closes = value == "close"
		}
	}
}
