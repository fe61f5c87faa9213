package like_test

import (
	"math"
	"testing"

	"likewise/internal/like"
)

func TestCommandValidate(t *testing.T) {
	good := like.Command{Item: like.Item{Collection: "posts", ID: "1"}, User: "u", Op: like.OpLike}
	with := func(change func(*like.Command)) like.Command {
		c := good
		change(&c)
		return c
	}
	tests := []struct {
		name  string
		cmd   like.Command
		valid bool
	}{
		{"like", good, true},
		{"unlike", with(func(c *like.Command) { c.Op = like.OpUnlike }), true},
		{"import", with(func(c *like.Command) { c.At = 1 }), true},
		{"import of the far future", with(func(c *like.Command) { c.At = math.MaxInt64 }), true}, // the ledger judges
		{"zero", like.Command{}, false},
		{"no operation", with(func(c *like.Command) { c.Op = 0 }), false},
		{"unknown operation", with(func(c *like.Command) { c.Op = 3 }), false},
		{"no item", with(func(c *like.Command) { c.Item = like.Item{} }), false},
		{"no user", with(func(c *like.Command) { c.User = "" }), false},
		{"before 1970", with(func(c *like.Command) { c.At = -1 }), false},
		{"unlike with a time", with(func(c *like.Command) { c.Op, c.At = like.OpUnlike, 1 }), false},
	}
	for _, tt := range tests {
		verdict(t, tt.name, tt.cmd.Validate(), tt.valid)
	}
}

func TestOpString(t *testing.T) {
	for op, want := range map[like.Op]string{like.OpLike: "like", like.OpUnlike: "unlike", 0: "Op(0)", 9: "Op(9)"} {
		if got := op.String(); got != want {
			t.Errorf("Op(%d).String() = %q, want %q", uint8(op), got, want)
		}
	}
}
