package auth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"likewise/internal/like"
)

const (
	// refreshGap is the least time between the start of two refreshes once a set
	// is loaded, whatever the requests ask for.
	refreshGap = time.Minute
	// firstRetry is the wait after the first failure to load a first set.
	firstRetry = time.Second
	// unknownKeyWait bounds how long a request waits for a refresh.
	unknownKeyWait = 100 * time.Millisecond
)

var (
	errNoKeys     = fmt.Errorf("%w: token keys are not loaded yet", like.ErrUnavailable)
	errOldKeys    = fmt.Errorf("%w: token keys could not be read again for too long", like.ErrUnavailable)
	errUnknownKey = errors.New("token key is unknown")
)

// keyring holds the newest good key set. run, its only goroutine, belongs to the
// caller of Verifier.Run; requests only ask it for a refresh.
type keyring struct {
	fetch func(context.Context) ([]byte, error)
	every time.Duration
	age   time.Duration // after which keys that were not read again do not count; 0 = never
	log   *slog.Logger
	keys  atomic.Pointer[keySet]
	read  atomic.Pointer[time.Time] // start of the newest reading that succeeded
	wake  chan struct{}             // capacity 1; at most one token per refresh

	mu struct {
		sync.Mutex
		last time.Time     // start of the newest refresh
		busy chan struct{} // closed at the end of the refresh asked for or running
	}
}

func newKeyring(cfg Config, log *slog.Logger) (*keyring, error) {
	k := &keyring{every: cfg.Refresh, age: cfg.MaxAge, log: log, wake: make(chan struct{}, 1)}
	if isURL(cfg.JWKS) {
		k.fetch = fetchURL(cfg.JWKS)
		return k, nil
	}
	k.fetch = func(context.Context) ([]byte, error) { return readFile(cfg.JWKS, maxSetBytes) }
	raw, err := readFile(cfg.JWKS, maxSetBytes)
	if err != nil {
		return nil, fmt.Errorf("%w: read JWKS: %w", like.ErrInvalid, err)
	}
	set, err := parseKeySet(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", like.ErrInvalid, cfg.JWKS, err)
	}
	k.mu.last = time.Now()
	k.read.Store(new(k.mu.last))
	k.keys.Store(set)
	return k, nil
}

// usable reports, as [like.ErrUnavailable], that there are no keys, or that they are
// older than age.
func (k *keyring) usable(age time.Duration) error {
	if k.keys.Load() == nil {
		return errNoKeys
	}
	if age > 0 && time.Since(*k.read.Load()) > age {
		return errOldKeys
	}
	return nil
}

// lookup returns a key and the set it is in. An unknown key is looked for once
// more after a refresh, if one is due or under way.
func (k *keyring) lookup(ctx context.Context, id keyID) (any, *keySet, error) {
	if err := k.usable(k.age); err != nil {
		return nil, nil, err
	}
	set := k.keys.Load()
	if key, ok := set.find(id); ok {
		return key, set, nil
	}
	done := k.ask()
	if done == nil {
		return nil, nil, errUnknownKey
	}
	ctx, cancel := context.WithTimeout(ctx, unknownKeyWait)
	defer cancel()
	select {
	case <-done:
	case <-ctx.Done():
	}
	set = k.keys.Load()
	if key, ok := set.find(id); ok {
		return key, set, nil
	}
	return nil, nil, errUnknownKey
}

// ask requests a refresh and returns a channel that is closed at its end, or nil
// when the last one is too recent.
func (k *keyring) ask() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mu.busy == nil {
		if time.Since(k.mu.last) < refreshGap {
			return nil
		}
		k.mu.busy = make(chan struct{})
		k.wake <- struct{}{} // has room: begin took the token of the refresh before
	}
	return k.mu.busy
}

func (k *keyring) begin() {
	k.mu.Lock()
	defer k.mu.Unlock()
	select {
	case <-k.wake:
	default:
	}
	k.mu.last = time.Now()
	if k.mu.busy == nil {
		k.mu.busy = make(chan struct{})
	}
}

func (k *keyring) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.mu.busy)
	k.mu.busy = nil
}

func (k *keyring) run(ctx context.Context) {
	retry := firstRetry
	for {
		err := k.refresh(ctx)
		if ctx.Err() != nil {
			return
		}
		wait := k.every
		if err != nil {
			wait = refreshGap
			if k.keys.Load() == nil {
				wait, retry = retry, min(2*retry, refreshGap)
			}
			k.log.LogAttrs(ctx, slog.LevelWarn, "token keys not refreshed",
				slog.Any("error", err), slog.Duration("retry_in", wait))
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		case <-k.wake:
			timer.Stop()
		}
	}
}

// refresh loads the set. An unchanged one keeps its identity, and with it the
// tokens that were verified; any failure keeps the old one.
func (k *keyring) refresh(ctx context.Context) error {
	k.begin()
	defer k.end()
	begin := time.Now()
	raw, err := k.fetch(ctx)
	if err != nil {
		return err
	}
	old := k.keys.Load()
	if old != nil && bytes.Equal(old.raw, raw) {
		k.read.Store(&begin)
		return nil
	}
	set, err := parseKeySet(raw)
	if err != nil {
		return err
	}
	k.read.Store(&begin)
	k.keys.Store(set)
	k.log.LogAttrs(ctx, slog.LevelInfo, "token keys loaded", slog.Int("keys", len(set.keys)))
	return nil
}
