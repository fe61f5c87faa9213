package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"likewise/internal/ledger"
	"likewise/internal/reconcile"
)

const (
	streamBuffer   = 32 << 10
	streamPatience = 30 * time.Second // for a client to take one buffer
	progressEvery  = time.Second
)

// lines is an answer of JSON lines that is too long for memory.
type lines struct {
	*bufio.Writer
	control *http.ResponseController
}

// streamed starts an answer of JSON lines. Its owner calls end.
func (x *exchange) streamed() *lines {
	x.Header().Set("Content-Type", "application/x-ndjson; charset=utf-8")
	x.WriteHeader(http.StatusOK)
	control := http.NewResponseController(x.ResponseWriter)
	return &lines{bufio.NewWriterSize(&patient{x, control}, streamBuffer), control}
}

// line writes one value and, so that it is seen at once, all before it.
func (l *lines) line(name string, value any) error {
	b, err := json.Marshal(map[string]any{name: value})
	if err != nil {
		return err
	}
	_, _ = l.Write(append(b, '\n'))
	return l.push()
}

func (l *lines) push() error {
	if err := l.Flush(); err != nil {
		return err
	}
	_ = l.control.Flush() // not every ResponseWriter has one; then the line comes later
	return nil
}

// end sends what is left and takes the write deadline off the connection.
func (l *lines) end() error {
	defer func() { _ = l.control.SetWriteDeadline(time.Time{}) }()
	return l.Flush()
}

// patient moves the write deadline on with every write, so that a long answer may
// take its time and a client that stopped reading may not.
type patient struct {
	x       *exchange
	control *http.ResponseController
}

func (p *patient) Write(b []byte) (int, error) {
	_ = p.control.SetWriteDeadline(time.Now().Add(streamPatience))
	return p.x.Write(b)
}

// auditBody is one audit as clients see it.
type auditBody struct {
	Collection string `json:"collection"`
	ID         string `json:"id"`
	Facts      int64  `json:"facts"`
	Total      int64  `json:"total"`
	Unlisted   int64  `json:"unlisted"`
	Phantom    int64  `json:"phantom"`
	Drift      bool   `json:"drift"`
	Repaired   bool   `json:"repaired"`
}

func bodyOf(a ledger.Audit) auditBody {
	return auditBody{a.Item.Collection, a.Item.ID, a.Facts, a.Total, a.Unlisted, a.Phantom, a.Drift(), a.Repaired}
}

// tally is how far a reconciliation has come.
type tally struct {
	Items    int64  `json:"items"`
	Drifted  int64  `json:"drifted"`
	Repaired int64  `json:"repaired"`
	Stopped  string `json:"stopped,omitempty"` // why it stopped before the end
}

func (t *tally) add(a ledger.Audit) {
	t.Items++
	if a.Drift() {
		t.Drifted++
	}
	if a.Repaired {
		t.Repaired++
	}
}

func (a *admin) audit(x *exchange, r *http.Request) error {
	item, err := pathItem(r)
	if err != nil {
		return err
	}
	repair, err := a.repair(x, r)
	if err != nil {
		return err
	}
	found, err := a.keeper.Audit(r.Context(), item, repair)
	if err != nil {
		return err
	}
	return x.answerJSON(http.StatusOK, bodyOf(found))
}

// reconcile audits every item. It streams what drifted and how far it is, and
// ends with a summary; an answer without one is not complete.
func (a *admin) reconcile(x *exchange, r *http.Request) error {
	repair, err := a.repair(x, r)
	if err != nil {
		return err
	}
	out, sum, last := x.streamed(), tally{}, time.Now()
	defer func() { _ = out.end() }()
	for found, err := range a.keeper.AuditAll(r.Context(), repair) {
		if stopped, ok := errors.AsType[*reconcile.StoppedError](err); ok {
			sum.Stopped = stopped.Error()
			break
		}
		if err != nil {
			_ = out.line("error", a.problemLine(x, err))
			return err
		}
		sum.add(found)
		if found.Drift() {
			err = out.line("drift", bodyOf(found))
		} else if now := time.Now(); now.Sub(last) >= progressEvery {
			last, err = now, out.line("progress", sum)
		}
		if err != nil {
			return clientLeft(r.Context(), err)
		}
	}
	a.log.InfoContext(r.Context(), "reconciled", "by", x.viewer(), "repair", repair,
		"items", sum.Items, "drifted", sum.Drifted, "repaired", sum.Repaired, "stopped", sum.Stopped)
	return out.line("summary", sum)
}

// repair reads the only parameter of the audits.
func (a *admin) repair(x *exchange, r *http.Request) (bool, error) {
	values, err := params(r.URL.RawQuery, "repair")
	if err != nil {
		return false, err
	}
	if err := a.refuseBody(x, r); err != nil {
		return false, err
	}
	return flag(values, "repair")
}

// export streams every fact. When it cannot go on it breaks the connection, so
// that no client takes a part for the whole.
func (a *admin) export(x *exchange, r *http.Request) error {
	if err := a.noExtras(x, r); err != nil {
		return err
	}
	out := x.streamed()
	var b []byte
	for f, err := range a.keeper.Export(r.Context()) {
		if err == nil {
			b = append(appendFact(b[:0], f), '\n')
			_, err = out.Write(b)
			err = clientLeft(r.Context(), err)
		}
		if err != nil {
			a.report(r.Context(), x, err)
			panic(http.ErrAbortHandler)
		}
	}
	if out.end() != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}

// clientLeft is the failure of a write to a client: not ours.
func clientLeft(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return context.Canceled
}
