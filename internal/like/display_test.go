package like_test

import (
	"math"
	"regexp"
	"testing"

	"likewise/internal/like"
)

func TestDisplay(t *testing.T) {
	tests := []struct {
		count int64
		want  string
	}{
		{0, "0"},
		{1, "1"},
		{999, "999"},
		{-1, "0"},
		{math.MinInt64, "0"},
		{1000, "1K"},
		{1049, "1K"},
		{1050, "1.1K"},
		{1949, "1.9K"},
		{1950, "2K"},
		{9949, "9.9K"},
		{9950, "10K"},
		{99_949, "99.9K"},
		{99_950, "100K"},
		{999_949, "999.9K"},
		{999_950, "1M"},
		{999_999, "1M"},
		{1_000_000, "1M"},
		{1_049_999, "1M"},
		{1_050_000, "1.1M"},
		{1_204_331, "1.2M"},
		{999_949_999, "999.9M"},
		{999_950_000, "1B"},
		{2_147_483_648, "2.1B"},
		{999_949_999_999, "999.9B"},
		{999_950_000_000, "1T"},
		{3_000_000_000_000, "3T"},
		{999_949_999_999_999, "999.9T"},
		{999_950_000_000_000, "1000T"},
		{math.MaxInt64, "9223372T"},
	}
	for _, tt := range tests {
		if got := like.Display(tt.count); got != tt.want {
			t.Errorf("Display(%d) = %q, want %q", tt.count, got, tt.want)
		}
	}
}

// TestDisplayShape checks around every power of ten that the form is short and
// never has a trailing ".0" or four digits before a unit that has a larger one.
func TestDisplayShape(t *testing.T) {
	shape := regexp.MustCompile(`^([1-9]\d{0,2}(\.[1-9])?[KMBT]|\d{1,3}|[1-9]\d*T)$`)
	for power := int64(1); power > 0 && power <= math.MaxInt64/10; power *= 10 {
		for _, part := range []int64{1, 3, 9} {
			for off := int64(-60); off <= 60; off++ {
				n := power*part + off*max(power/1000, 1)
				if got := like.Display(n); !shape.MatchString(got) {
					t.Errorf("Display(%d) = %q", n, got)
				}
			}
		}
	}
}
