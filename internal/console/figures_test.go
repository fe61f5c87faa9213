package console

import (
	"math"
	"testing"
	"testing/synctest"
	"time"
)

// histogramOf counts values in buckets of 1, 2, 4 and more.
func histogramOf(values ...float64) []bucket {
	b := []bucket{{bound: 1}, {bound: 2}, {bound: 4}, {bound: math.Inf(1)}}
	for _, v := range values {
		for i := range b {
			if v <= b[i].bound {
				b[i].count++
			}
		}
	}
	return b
}

func TestQuantile(t *testing.T) {
	for _, tt := range []struct {
		name    string
		q       float64
		buckets []bucket
		want    float64
	}{
		{"no histogram", 0.5, nil, 0},
		{"nothing observed", 0.5, histogramOf(), 0},
		{"in the first bucket", 0.5, histogramOf(0.1, 0.9), 0.5},
		{"at a bound", 0.5, histogramOf(0.5, 1.5), 1},
		{"between bounds", 0.75, histogramOf(0.5, 1.5), 1.5},
		{"over an empty bucket", 0.99, histogramOf(0.5, 3, 3, 3), 2 + 2*(3.96-1)/3},
		{"beyond the last bound", 0.99, histogramOf(0.5, 100), 4},
		{"all", 1, histogramOf(0.5, 1.5), 2},
	} {
		if got := quantile(tt.q, tt.buckets); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w window
		look := func(want float64, values ...float64) {
			t.Helper()
			if p50 := quantile(0.5, w.recent(time.Now(), histogramOf(values...))); p50 != want {
				t.Errorf("after %d values: median %v, want %v", len(values), p50, want)
			}
		}
		look(0.5, 1) // since the start
		look(0, 1)   // nothing happened since
		time.Sleep(4 * time.Second)
		look(3, 1, 4, 4) // two of up to 4
		time.Sleep(4 * time.Second)
		look(3, 1, 4, 4)
		time.Sleep(4 * time.Second)
		look(0.5, 1, 4, 4, 1) // what was before 8 s ago is gone
		for range 100 {
			time.Sleep(100 * time.Millisecond)
			look(0.5, 1, 4, 4, 1, 1)
		}
		if len(w.looks) > 22 {
			t.Errorf("%d looks are kept", len(w.looks))
		}
		time.Sleep(time.Hour)
		look(0.75, 1, 4, 4, 1, 1, 1) // nobody looked for long: since the start
	})
}
