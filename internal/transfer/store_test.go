package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

func newStore(t *testing.T, h http.HandlerFunc) Store {
	t.Helper()
	r := newServer(t, h)
	r.RetryFor = 0
	return Store{r}
}

func TestStoreExport(t *testing.T) {
	want := slices.Collect(func(yield func(like.Fact) bool) {
		for f := range facts(nil) {
			yield(f)
		}
	})
	for _, tc := range []struct {
		name, text string
		abort      bool
		kind       error
	}{
		{"whole", twoLines, false, nil},
		{"cut off between lines", twoLines, true, like.ErrUnavailable},
		{"cut off within a line", twoLines + `{"collection":"po`, true, like.ErrUnavailable},
		{"ends within a line", twoLines + `{"collection":"po`, false, like.ErrUnavailable},
		{"not likewise", twoLines + "hello\n", false, like.ErrCorrupt},
		{"without a time", twoLines + `{"collection":"posts","id":"1","user":"u"}` + "\n", false, like.ErrCorrupt},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStore(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, tc.text)
				if tc.abort {
					_ = http.NewResponseController(w).Flush()
					panic(http.ErrAbortHandler)
				}
			})
			var got []like.Fact
			var last error
			for f, err := range s.Export(t.Context()) {
				if last = err; err == nil {
					got = append(got, f)
				}
			}
			if !slices.Equal(got, want) || !errors.Is(last, tc.kind) {
				t.Errorf("facts %v, error %v", got, last)
			}
		})
	}
}

func TestStoreAsksForPages(t *testing.T) {
	var asked []string
	s := newStore(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.RequestURI)
		_, _ = io.WriteString(w, `{"likers":[{"user":"a b","liked_at":"1970-01-01T00:00:00.000002Z"}],"more":true}`)
	})
	item := like.Item{Collection: "posts", ID: "a/b"}
	fact := like.Fact{Item: item, User: "a b", Since: 2}
	for _, after := range []like.Fact{{}, fact} {
		page, err := s.Likers(t.Context(), item, after, 7)
		if err != nil || !page.More || !slices.Equal(page.Facts, []like.Fact{fact}) {
			t.Errorf("page %+v, error %v", page, err)
		}
	}
	want := []string{
		"GET /admin/v1/items/posts/a%2Fb/likers?limit=7",
		"GET /admin/v1/items/posts/a%2Fb/likers?after=1970-01-01T00%3A00%3A00.000002Z&after_user=a+b&limit=7",
	}
	if !slices.Equal(asked, want) {
		t.Errorf("asked\n%s\nwant\n%s", asked, want)
	}
}

func TestStoreApplies(t *testing.T) {
	s := newStore(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/admin/v1/likes:batch" {
			t.Errorf("asked %s", r.URL.Path)
		}
		_, _ = io.WriteString(w, `{"results":[{"liked":true,"count":5}]}`)
	})
	acks, err := s.ApplyMany(t.Context(), oneCommand)
	if err != nil || len(acks) != 1 || acks[0] != (ledger.Ack{State: like.State{Liked: true}, Count: 5}) {
		t.Errorf("acks %+v, error %v", acks, err)
	}
}

func TestStoreFeed(t *testing.T) {
	const totals = `{"changed":[]}` + "\n" + `{"changed":[]}` + "\n" +
		`{"changed":[{"collection":"posts","id":"1","count":2,"version":"18446744073709551615"}]}` + "\n"
	for _, tc := range []struct {
		name, end string
		kind      error
	}{
		{"too slow", `{"error":{"code":"overloaded","title":"no"}}`, like.ErrOverloaded},
		{"closed", `{"error":{"code":"shutting_down","title":"no"}}`, like.ErrClosed},
		{"other", `{"error":{"code":"internal","title":"no"}}`, like.ErrUnavailable},
		{"cut off", "", like.ErrUnavailable},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStore(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, totals+tc.end) })
			var got []string
			var last error
			for batch, err := range s.Feed(t.Context()) {
				if last = err; err == nil {
					got = append(got, fmt.Sprint(batch))
				}
			}
			if fmt.Sprint(got) != "[[] [{posts/1 2 18446744073709551615}]]" || !errors.Is(last, tc.kind) {
				t.Errorf("batches %v, error %v", got, last)
			}
		})
	}
}

// TestStoreFeedEndsWithItsContext checks the last element of a feed.
func TestStoreFeedEndsWithItsContext(t *testing.T) {
	s := newStore(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"changed":[]}`+"\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	cause := errors.New("enough")
	var last error
	for _, err := range s.Feed(ctx) {
		cancel(cause)
		last = err
	}
	if !errors.Is(last, cause) {
		t.Errorf("error %v", last)
	}
}

// holdStill is a server that freezes as the real one does, until lost is closed.
func holdStill(lost <-chan struct{}, ended chan<- error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		_ = c.EnableFullDuplex()
		go func() { <-lost; _ = c.SetReadDeadline(time.Unix(1, 0)) }()
		for {
			_, _ = io.WriteString(w, `{"frozen":true}`+"\n")
			_ = c.Flush()
			if _, err := r.Body.Read(make([]byte, 1)); err != nil {
				ended <- err
				return
			}
		}
	}
}

func TestStoreFreezes(t *testing.T) {
	ended, never := make(chan error, 1), make(chan struct{})
	defer close(never)
	s := newStore(t, holdStill(never, ended))
	cause := errors.New("enough")
	err := s.Freeze(t.Context(), func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			t.Errorf("lost: %v", context.Cause(ctx))
		case <-time.After(2 * pulse):
		}
		return cause
	})
	if !errors.Is(err, cause) {
		t.Errorf("error %v", err)
	}
	if err := <-ended; !errors.Is(err, io.EOF) {
		t.Errorf("the request ended with %v", err)
	}
}

func TestStoreTellsThatTheStandstillIsLost(t *testing.T) {
	ended, lost := make(chan error, 1), make(chan struct{})
	s := newStore(t, holdStill(lost, ended))
	err := s.Freeze(t.Context(), func(ctx context.Context) error {
		close(lost)
		<-ctx.Done()
		return context.Cause(ctx)
	})
	if !errors.Is(err, like.ErrUnavailable) {
		t.Errorf("error %v", err)
	}
}

func TestStoreFreezeRefused(t *testing.T) {
	for status, kind := range map[int]error{503: like.ErrUnavailable, 501: errors.ErrUnsupported} {
		s := newStore(t, func(w http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(w).EnableFullDuplex()
			answerProblem(w, status, "no")
		})
		err := s.Freeze(t.Context(), func(context.Context) error { t.Error("called"); return nil })
		if !errors.Is(err, kind) {
			t.Errorf("status %d: error %v", status, err)
		}
	}
}

func TestStoreFreezeEndsWithItsContext(t *testing.T) {
	ended, never := make(chan error, 1), make(chan struct{})
	defer close(never)
	s := newStore(t, holdStill(never, ended))
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	err := s.Freeze(ctx, func(ctx context.Context) error {
		cancel(cause)
		<-ctx.Done()
		return context.Cause(ctx)
	})
	if !errors.Is(err, cause) {
		t.Errorf("error %v", err)
	}
	<-ended
}
