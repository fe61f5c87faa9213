package httpapi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

func TestItemLikers(t *testing.T) {
	once(t, func(s *service) {
		for k, user := range []string{"a&b", "é", "c"} {
			s.operate("POST", "/admin/v1/likes:batch", fmt.Sprintf(
				`{"commands":[{"op":"like","collection":"posts","id":"a/b","user":%q,"liked_at":"1999-01-0%dT12:00:00.5Z"}]}`, user, k+1)).
				want(200, fmt.Sprintf(`{"results":[{"liked":true,"count":%d}]}`, k+1))
		}
		const path = "/admin/v1/items/posts/a%2Fb/likers"
		s.operate("GET", path+"?limit=2", "").want(200, `{"likers":[`+
			`{"user":"c","liked_at":"1999-01-03T12:00:00.5Z"},{"user":"é","liked_at":"1999-01-02T12:00:00.5Z"}],"more":true}`)
		position := url.Values{"after_user": {"é"}, "after": {"1999-01-02T12:00:00.5Z"}}.Encode()
		s.operate("GET", path+"?"+position, "").want(200, `{"likers":[{"user":"a\u0026b","liked_at":"1999-01-01T12:00:00.5Z"}],"more":false}`)
		s.operate("GET", "/admin/v1/items/posts/unknown/likers", "").want(200, `{"likers":[],"more":false}`)
		for _, query := range []string{
			"limit=0", "limit=1001", "limit=1&limit=2", "after_user=u", "after=1999-01-02T12:00:00Z",
			"after_user=u&after=yesterday", "after_user=u&after=1960-01-01T00:00:00Z", "cursor=x",
		} {
			s.operate("GET", path+"?"+query, "").problem(400, "invalid_query")
		}
		s.operate("GET", path+"?after_user=&after=1999-01-02T12:00:00Z", "").problem(400, "invalid_request")
		s.operate("GET", "/admin/v1/items/Posts/1/likers", "").problem(400, "invalid_request")
		s.faults.set(like.ErrUnavailable)
		s.operate("GET", path, "").problem(503, "unavailable")
	})
}

// TestAdminBatchTakesTheLongest sends a batch of which every byte of a name is
// escaped, and one that is too long.
func TestAdminBatchTakesTheLongest(t *testing.T) {
	once(t, func(s *service) {
		command := func(n int) string {
			name := strings.Repeat(`\u003c`, like.MaxIDBytes-4) + fmt.Sprintf("%04d", n)
			return fmt.Sprintf(`{"op":"unlike","collection":%q,"id":"%s","user":"%s"}`, strings.Repeat("c", like.MaxCollectionBytes), name, name)
		}
		commands := make([]string, ledger.MaxBatch)
		for n := range commands {
			commands[n] = command(n)
		}
		s.operate("POST", "/admin/v1/likes:batch", `{"commands":[`+strings.Join(commands, ",")+`]}`).want(200, "")
		s.operate("POST", "/admin/v1/likes:batch", `{"commands":[`+strings.Join(append(commands, command(0)), ",")+`]}`).problem(400, "too_many")
		s.operate("POST", "/admin/v1/likes:batch", `{"commands":[]}`).problem(400, "invalid_body")
		s.faults.set(like.ErrOverloaded)
		s.operate("POST", "/admin/v1/likes:batch", `{"commands":[`+commands[0]+`]}`).problem(503, "overloaded")
	})
}

// stream is an answer of lines under way, over a real connection.
type stream struct {
	*testing.T
	*bufio.Scanner
	close func()
}

func (s *service) open(method, path string, body io.Reader) *stream {
	s.Helper()
	server := httptest.NewServer(s.admin)
	r, err := http.NewRequestWithContext(s.Context(), method, server.URL+path, body)
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+operator)
	client := &http.Client{Transport: &http.Transport{}}
	res, err := client.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		s.Fatalf("status %s", res.Status)
	}
	closed := func() {
		res.Body.Close()
		client.CloseIdleConnections()
		server.CloseClientConnections()
		server.Close()
	}
	s.Cleanup(closed)
	return &stream{s.T, bufio.NewScanner(res.Body), closed}
}

func (s *stream) next(want string) {
	s.Helper()
	if !s.Scan() || s.Text() != want {
		s.Fatalf("line %q, error %v, want %q", s.Text(), s.Err(), want)
	}
}

func TestChanges(t *testing.T) {
	s := newService(t)
	c := s.open("GET", "/admin/v1/changes", nil)
	c.next(`{"changed":[]}`)
	s.put("u1", "posts/a%2Fb")
	c.next(`{"changed":[{"collection":"posts","id":"a/b","count":1,"version":"1"}]}`)
	s.ledger.Close()
	if !c.Scan() || !strings.Contains(c.Text(), `{"error":{`) || !strings.Contains(c.Text(), `"code":"shutting_down"`) {
		t.Errorf("the last line of a closed ledger: %s", c.Text())
	}
	if c.Scan() {
		t.Errorf("another line: %s", c.Text())
	}
}

// TestChangesBeat checks that a feed without changes shows that it lives.
func TestChangesBeat(t *testing.T) {
	once(t, func(s *service) {
		ctx, cancel := context.WithCancel(s.Context())
		r := httptest.NewRequestWithContext(ctx, "GET", "/admin/v1/changes", nil)
		r.Header.Set("Authorization", "Bearer "+operator)
		w := httptest.NewRecorder()
		done := make(chan struct{})
		go func() { defer close(done); s.admin.ServeHTTP(w, r) }()
		time.Sleep(3*changesBeat + changesBeat/2)
		cancel()
		<-done
		if n := strings.Count(w.Body.String(), `{"changed":[]}`); n != 4 {
			s.Errorf("%d lines:\n%s", n, w.Body)
		}
	})
}

// TestFreeze holds a ledger still over one request, in each of the ways in which it
// can end.
func TestFreeze(t *testing.T) {
	for name, end := range map[string]func(s *service, body *io.PipeWriter, c *stream){
		"body ends":         func(_ *service, body *io.PipeWriter, _ *stream) { body.Close() },
		"connection breaks": func(_ *service, _ *io.PipeWriter, c *stream) { go c.close() },
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t)
			out, in := io.Pipe()
			defer in.Close()
			c := s.open("POST", "/admin/v1/freeze", out)
			c.next(`{"frozen":true}`)
			s.put("u1", "posts/1").problem(503, "unavailable")
			s.get(tokenOf("u1"), "/v1/posts/1/like").want(200, `{"liked":false,"count":0}`)
			s.do(call{method: "GET", target: "/readyz", admin: true}).want(200, "")
			s.operate("POST", "/admin/v1/freeze", "").problem(503, "unavailable")
			if _, err := in.Write([]byte{'\n'}); err != nil {
				t.Fatal(err)
			}
			c.next(`{"frozen":true}`)
			end(s, in, c)
			for c.Scan() { // until the request has ended
			}
			s.thaws()
		})
	}
}

// thaws waits until likes are accepted.
func (s *service) thaws() {
	s.Helper()
	for deadline := time.Now().Add(10 * time.Second); s.put("u1", "posts/1").Code != http.StatusOK; {
		if time.Now().After(deadline) {
			s.Fatal("the ledger still stands still")
		}
		<-time.After(time.Millisecond)
	}
}

// silent is a body of which nothing comes, until its reader may not wait any more.
type silent struct{ over chan struct{} }

func (b silent) Read([]byte) (int, error) { <-b.over; return 0, errors.New("deadline exceeded") }

// impatient takes read deadlines on behalf of a silent body.
type impatient struct {
	*httptest.ResponseRecorder
	silent
}

func (w impatient) SetReadDeadline(t time.Time) error {
	time.AfterFunc(time.Until(t), func() { close(w.over) })
	return nil
}

// TestFreezeEndsWithSilence checks that a client that says nothing more, but whose
// connection stays, does not keep the ledger still.
func TestFreezeEndsWithSilence(t *testing.T) {
	once(t, func(s *service) {
		w := impatient{httptest.NewRecorder(), silent{make(chan struct{})}}
		r := httptest.NewRequestWithContext(s.Context(), "POST", "/admin/v1/freeze", w.silent)
		r.Header.Set("Authorization", "Bearer "+operator)
		done := make(chan struct{})
		go func() { defer close(done); s.admin.ServeHTTP(w, r) }()
		time.Sleep(freezePatience - time.Millisecond)
		s.put("u1", "posts/1").problem(503, "unavailable")
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		<-done
		s.put("u1", "posts/1").want(200, "")
	})
}

// TestFreezeRefusesAtOnce checks that a refusal does not wait for a body that goes on.
func TestFreezeRefusesAtOnce(t *testing.T) {
	s := newService(t)
	server := httptest.NewServer(s.admin)
	defer server.Close()
	out, in := io.Pipe()
	defer in.Close()
	client := &http.Client{Transport: &http.Transport{}, Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	res, err := client.Post(server.URL+"/admin/v1/freeze", "application/octet-stream", out)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusUnauthorized {
		t.Errorf("status %s", res.Status)
	}
}

// TestFreezeEndsWithTheServer checks that a stop does not wait for the next sign of
// life.
func TestFreezeEndsWithTheServer(t *testing.T) {
	s := newService(t)
	stopping, stop := context.WithCancelCause(t.Context())
	out, in := io.Pipe()
	defer in.Close()
	admin := s.admin
	s.admin = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancelCause(r.Context())
		defer context.AfterFunc(stopping, func() { cancel(context.Cause(stopping)) })()
		admin.ServeHTTP(w, r.WithContext(ctx))
	})
	c := s.open("POST", "/admin/v1/freeze", out)
	c.next(`{"frozen":true}`)
	begin := time.Now()
	stop(like.ErrClosed)
	if c.Scan() || time.Since(begin) > freezePatience/2 {
		t.Errorf("line %q after %v", c.Text(), time.Since(begin))
	}
	s.thaws()
}

// TestMovingIsDocumented checks answers against the document.
func TestMovingIsDocumented(t *testing.T) {
	once(t, func(s *service) {
		s.do(call{method: "POST", target: "/admin/v1/freeze", token: operator, body: "..", admin: true, header: http.Header{"Content-Type": {"application/octet-stream"}}}).
			want(200, "{\"frozen\":true}\n{\"frozen\":true}\n")
		s.operate("POST", "/admin/v1/freeze?for=1s", "").problem(400, "invalid_query")
		s.operate("GET", "/admin/v1/changes?since=1", "").problem(400, "invalid_query")
		s.ledger.Close()
		s.operate("POST", "/admin/v1/freeze", "").problem(503, "shutting_down")
	})
}
