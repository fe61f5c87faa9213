package like_test

import (
	"testing"
	"time"

	"likewise/internal/like"
)

func TestClock(t *testing.T) {
	base := time.Date(2026, 11, 29, 12, 0, 0, 999, time.UTC)
	stamp := like.StampOf(base)
	tests := []struct {
		name string
		last like.Stamp
		wall []time.Duration // what the wall clock says, from base
		want []like.Stamp    // from stamp
	}{
		{"runs", 0, []time.Duration{0, time.Microsecond, time.Second}, []like.Stamp{0, 1, 1_000_000}},
		{"stands still", 0, []time.Duration{0, 0, 0}, []like.Stamp{0, 1, 2}},
		{"is too coarse", 0, []time.Duration{0, 300, 600, 2 * time.Microsecond}, []like.Stamp{0, 1, 2, 3}},
		{"steps back", 0, []time.Duration{0, -time.Hour, -time.Hour, 5 * time.Microsecond}, []like.Stamp{0, 1, 2, 5}},
		{"starts behind its store", stamp + 100, []time.Duration{0, time.Microsecond, 200 * time.Microsecond}, []like.Stamp{101, 102, 200}},
		{"catches up exactly", stamp + 2, []time.Duration{2 * time.Microsecond, 4 * time.Microsecond}, []like.Stamp{3, 4}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var now time.Time
			clock := like.NewClock(func() time.Time { return now }, tt.last)
			for k, wall := range tt.wall {
				now = base.Add(wall)
				if got := clock.Now(); got != like.StampOf(now) {
					t.Errorf("Now() = %d, want the wall clock's %d", got, like.StampOf(now))
				}
				if got := clock.Next() - stamp; got != tt.want[k] {
					t.Errorf("stamp %d = %d, want %d", k, got, tt.want[k])
				}
			}
		})
	}
}

func TestStampKeepsMicroseconds(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_901_234, time.FixedZone("", 3600))
	got := like.StampOf(at).Time()
	if want := at.Truncate(time.Microsecond).UTC(); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	if got := like.Stamp(0).Time(); !got.Equal(time.Unix(0, 0)) {
		t.Errorf("stamp 0 is %v", got)
	}
}
