package httpapi

import (
	"errors"
	"net/http"
	"time"

	"likewise/internal/auth"
	"likewise/internal/like"
)

// shedFor is how long batches are refused at the door after the ledger refused one.
// A refusal then costs less than reading a thousand commands for nothing, and the
// ledger's queue still never runs dry.
const shedFor = 5 * time.Millisecond

// batch applies commands of any users for a trusted backend, in order. One that is
// not valid refuses them all.
func (a *api) batch(x *exchange, r *http.Request) error {
	if _, err := params(r.URL.RawQuery); err != nil {
		return err
	}
	if refused := a.refusedAt.Load(); refused != nil && time.Since(*refused) < shedFor {
		return like.ErrOverloaded
	}
	text, err := a.readBody(x, r)
	if err != nil {
		return err
	}
	cmds, timed, err := a.batchBody(text)
	if err != nil {
		return err
	}
	if timed && !x.identity.Has(auth.ScopeImport) {
		return a.refuseScope(x, auth.ScopeImport)
	}
	acks, err := a.ledger.ApplyMany(r.Context(), cmds)
	if err != nil {
		if now := time.Now(); errors.Is(err, like.ErrOverloaded) {
			a.refusedAt.Store(&now)
		}
		return err
	}
	for i, ack := range acks {
		a.noticed(cmds[i].Item, ack)
	}
	return x.answer(appendResults(make([]byte, 0, 32*len(acks)+16), acks))
}

// batchBody reads {"commands":[…]}; timed says whether one has a time of its own.
func (s *site) batchBody(text string) (cmds []like.Command, timed bool, err error) {
	cmds = make([]like.Command, 0, min(s.cfg.BatchMaxCommands, len(text)/32))
	err = decode(text, func(in *input) {
		in.object(func(key string) {
			if key != "commands" {
				in.unknown(key)
				return
			}
			in.array("commands", s.cfg.BatchMaxCommands, func() {
				c := in.command()
				if err := c.Validate(); err != nil {
					in.stop(err)
				}
				timed = timed || c.At != 0
				cmds = append(cmds, c)
			})
		})
	})
	if err == nil && len(cmds) == 0 {
		err = refuse(invalidBody, "no command is given")
	}
	return cmds, timed, err
}

// command reads {"op":…,"collection":…,"id":…,"user":…,"liked_at":…}.
func (in *input) command() (c like.Command) {
	in.object(func(key string) {
		switch key {
		case "op":
			c.Op = in.op()
		case "collection":
			c.Item.Collection = in.str()
		case "id":
			c.Item.ID = in.str()
		case "user":
			c.User = like.User(in.str())
		case "liked_at":
			c.At = in.stamp()
		default:
			in.unknown(key)
		}
	})
	return c
}

func (in *input) op() like.Op {
	switch in.str() {
	case "like":
		return like.OpLike
	case "unlike":
		return like.OpUnlike
	default:
		return 0 // refused with the rest of the command
	}
}

// stamp reads an RFC 3339 time after 1970, cut to the microsecond.
func (in *input) stamp() like.Stamp {
	text := in.str()
	t, err := time.Parse(time.RFC3339, text)
	// The library also takes an hour of one digit and a decimal comma.
	if err != nil || text[13] != ':' || text[19] == ',' || t.UnixMicro() <= 0 {
		in.fail("a time after 1970 as RFC 3339 is expected")
		return 0
	}
	return like.StampOf(t)
}
