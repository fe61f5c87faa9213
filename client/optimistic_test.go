package client

import (
	"testing"
	"time"
)

func TestOptimistic(t *testing.T) {
	start := time.Unix(0, 0)
	at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	total := func(n int64, version uint64) Count { return Count{Count: n, Version: version} }
	liked, not := true, false
	for _, tt := range []struct {
		name string
		do   func(o Optimistic) Optimistic
		want View
	}{
		{"nothing known", func(o Optimistic) Optimistic { return Optimistic{} }, View{}},
		{"loaded", func(o Optimistic) Optimistic { return o }, View{Count: 10}},
		{"tap", func(o Optimistic) Optimistic { return o.Want(liked) }, View{true, 11, true}},
		{"tap twice", func(o Optimistic) Optimistic { return o.Want(liked).Want(not) }, View{false, 10, true}},
		{"unlike of an own like", func(o Optimistic) Optimistic { return o.Load(Outcome{Liked: true, Count: 5}).Want(not) }, View{false, 4, true}},
		{"answered", func(o Optimistic) Optimistic { return o.Want(liked).Answer(Outcome{Liked: true, Count: 11}, at(0)) }, View{true, 11, false}},
		{"answered to an older wish", func(o Optimistic) Optimistic {
			return o.Want(liked).Want(not).Answer(Outcome{Liked: true, Count: 11}, at(0))
		}, View{false, 10, true}},
		{"refused", func(o Optimistic) Optimistic { return o.Want(liked).Refuse(at(0)) }, View{false, 10, false}},
		{"refused, with a total held", func(o Optimistic) Optimistic {
			return o.Want(liked).Observe(total(20, 1), at(0)).Refuse(at(0))
		}, View{false, 20, false}},
		{"others", func(o Optimistic) Optimistic { return o.Observe(total(12, 1), at(0)) }, View{false, 12, false}},
		{"older total", func(o Optimistic) Optimistic { return o.Observe(total(12, 2), at(0)).Observe(total(11, 1), at(0)) }, View{false, 12, false}},
		{"total while pending", func(o Optimistic) Optimistic { return o.Want(liked).Observe(total(11, 1), at(0)) }, View{true, 11, true}},
		{"total without the like, after the answer", func(o Optimistic) Optimistic {
			return o.Want(liked).Answer(Outcome{Liked: true, Count: 11}, at(0)).Observe(total(10, 1), at(1))
		}, View{true, 11, false}},
		{"the same, long after", func(o Optimistic) Optimistic {
			return o.Want(liked).Answer(Outcome{Liked: true, Count: 11}, at(0)).Observe(total(10, 1), at(1)).Settle(at(3))
		}, View{true, 10, false}},
		{"total with more likes, after the answer", func(o Optimistic) Optimistic {
			return o.Want(liked).Answer(Outcome{Liked: true, Count: 11}, at(0)).Observe(total(30, 1), at(1))
		}, View{true, 30, false}},
		{"total that still has the like", func(o Optimistic) Optimistic {
			return o.Want(not).Answer(Outcome{Count: 9}, at(0)).Observe(total(10, 1), at(1))
		}, View{false, 9, false}},
		{"load while pending", func(o Optimistic) Optimistic { return o.Want(liked).Load(Outcome{Count: 50}) }, View{true, 11, true}},
		{"never negative", func(o Optimistic) Optimistic {
			return Optimistic{}.Load(Outcome{Liked: true, Count: 0}).Want(not)
		}, View{false, 0, true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := Optimistic{}.Load(Outcome{Count: 10})
			kept := before
			if got := tt.do(before).View(); got != tt.want {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
			if before != kept {
				t.Error("the value was changed in place")
			}
		})
	}
}
