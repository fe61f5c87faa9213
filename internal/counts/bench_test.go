package counts

import (
	"strconv"
	"testing"

	"likewise/internal/like"
)

func benchPage(n int) []like.Item {
	items := make([]like.Item, n)
	for i := range items {
		items[i] = post("70123456789" + strconv.Itoa(i))
	}
	return items
}

func BenchmarkPageL1(b *testing.B) {
	for _, n := range []int{20, 50} {
		items := benchPage(n)
		c := New(newFake(), nil, DefaultConfig(), nil)
		if _, err := c.Page(b.Context(), "", items); err != nil {
			b.Fatal(err)
		}
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = c.Page(b.Context(), "", items)
			}
		})
		b.Run(strconv.Itoa(n)+"/parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					_, _ = c.Page(b.Context(), "", items)
				}
			})
		})
	}
}

func BenchmarkPageMiss20(b *testing.B) {
	items := benchPage(20)
	f := newFake()
	b.ReportAllocs()
	for b.Loop() {
		f.calls = f.calls[:0]
		c := New(f, nil, Config{Items: 100, RefreshAfter: 1, ExpireAfter: 1, LoadTimeout: 1e9, MaxLoads: 1}, nil)
		_, _ = c.Page(b.Context(), "", items)
	}
}

func BenchmarkObserve(b *testing.B) {
	c := New(newFake(), nil, DefaultConfig(), nil)
	b.ReportAllocs()
	for v := uint64(1); b.Loop(); v++ {
		c.Observe(total("1", int64(v), v))
	}
}
