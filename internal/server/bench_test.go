package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"likewise/internal/auth"
	"likewise/internal/config"
	"likewise/internal/ledger"
	"likewise/internal/ledger/memory"
	"likewise/internal/like"
	"likewise/internal/observe"
)

const benchOrigin = "https://app.example"

// BenchmarkHTTP likes a new item with every request over loopback, with the limits
// and CORS on, beside a handler that does nothing. The clients' own work is in all
// of them.
func BenchmarkHTTP(b *testing.B) {
	cfg := testConfig(b)
	cfg.CORSOrigins = []string{benchOrigin}
	keys, err := loadKeys(benchDir(b, cfg))
	if err != nil {
		b.Fatal(err)
	}
	for _, target := range []struct {
		name  string
		serve func(*testing.B) string
	}{
		{"empty", serveNothing},
		{"memory", func(b *testing.B) string {
			return serveLedger(b, benchDir(b, cfg), keys, func(config.Config) (ledger.Ledger, error) {
				return memory.New(memory.Config{}), nil
			})
		}},
		{"pebble", func(b *testing.B) string {
			return serveLedger(b, benchDir(b, cfg), keys, func(cfg config.Config) (ledger.Ledger, error) {
				return openLedger(b.Context(), cfg, testOptions(), nil, nil)
			})
		}},
	} {
		for _, clients := range []int{64, 256} {
			b.Run(fmt.Sprintf("%s/clients=%d", target.name, clients), func(b *testing.B) {
				likeNewItems(b, target.serve(b), keys.auth, clients)
			})
		}
	}
}

// benchDir is cfg with a new data directory.
func benchDir(b *testing.B, cfg config.Config) config.Config {
	cfg.DataDir = b.TempDir()
	return cfg
}

func serveNothing(b *testing.B) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"liked":true,"count":1}`)
	}))
	b.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// serveLedger runs a whole server over a ledger.
func serveLedger(b *testing.B, cfg config.Config, k keys, open func(config.Config) (ledger.Ledger, error)) string {
	o := testOptions()
	s := &Server{log: o.Log, patience: cfg.Limits.ShutdownTimeout, registry: observe.NewRegistry(o.Build)}
	facts, err := open(cfg)
	if err != nil {
		b.Fatal(err)
	}
	s.cleanup = append(s.cleanup, facts.Close)
	tracer, err := observe.NewTracer(b.Context(), "", o.Build, o.Log)
	if err != nil {
		b.Fatal(err)
	}
	if s.public, err = s.listen(b.Context(), "public", cfg.Listen, "", connections(cfg)); err != nil {
		b.Fatal(err)
	}
	if s.admin, err = s.listen(b.Context(), "admin", cfg.AdminListen, "", connections(cfg)); err != nil {
		b.Fatal(err)
	}
	if err := s.connect(cfg, o, k, &store{Ledger: facts, feed: facts}, tracer); err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Run(ctx); err != nil {
			b.Error(err)
		}
	})
	b.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	public, _ := s.Addresses()
	return public
}

// likeNewItems keeps clients busy, each a user with a connection.
func likeNewItems(b *testing.B, address string, k auth.Config, clients int) {
	var users, items atomic.Int64
	b.SetParallelism(max(1, clients/runtime.GOMAXPROCS(0)))
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		token, err := auth.Sign(k, like.User("user-"+strconv.FormatInt(users.Add(1), 10)), nil, time.Hour)
		if err != nil {
			b.Error(err)
			return
		}
		conn, err := net.Dial("tcp", address)
		if err != nil {
			b.Error(err)
			return
		}
		defer conn.Close()
		head := "/like HTTP/1.1\r\nHost: x\r\nOrigin: " + benchOrigin + "\r\nAuthorization: Bearer " + token + "\r\n\r\n"
		in, request := bufio.NewReader(conn), []byte(nil)
		for pb.Next() {
			request = append(strconv.AppendInt(append(request[:0], "PUT /v1/posts/"...), items.Add(1), 10), head...)
			if _, err := conn.Write(request); err != nil {
				b.Error(err)
				return
			}
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				b.Error(err)
				return
			}
			text, _ := io.ReadAll(res.Body)
			if res.StatusCode != http.StatusOK || !strings.HasSuffix(string(text), `"count":1}`) {
				b.Errorf("%s %s", res.Status, text)
				return
			}
		}
	})
	b.StopTimer()
}
