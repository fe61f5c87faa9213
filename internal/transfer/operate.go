package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// Tally counts what an audit of everything found.
type Tally struct {
	Items    int64 `json:"items"`
	Drifted  int64 `json:"drifted"`
	Repaired int64 `json:"repaired"`
	// Stopped says why the audit stopped before its end, empty when it did not.
	Stopped string `json:"stopped"`
}

// Reconcile audits every item of a ledger in this process and calls found for
// each that differs.
func Reconcile(ctx context.Context, k ledger.Keeper, repair bool, found func(ledger.Audit)) (Tally, error) {
	var sum Tally
	for a, err := range k.AuditAll(ctx, repair) {
		if err != nil {
			return sum, err
		}
		sum.add(a, found)
	}
	return sum, nil
}

func (t *Tally) add(a ledger.Audit, found func(ledger.Audit)) {
	t.Items++
	if a.Drift() {
		t.Drifted++
		found(a)
	}
	if a.Repaired {
		t.Repaired++
	}
}

// audit is a ledger.Audit as the server writes it.
type audit struct {
	Collection, ID                  string
	Facts, Total, Unlisted, Phantom int64
	Repaired                        bool
}

func (a audit) audit() ledger.Audit {
	return ledger.Audit{
		Item:  like.Item{Collection: a.Collection, ID: a.ID},
		Facts: a.Facts, Total: a.Total, Unlisted: a.Unlisted, Phantom: a.Phantom, Repaired: a.Repaired,
	}
}

// Reconcile lets the server audit every item, and calls found for each that
// differs. An answer that ends before its summary is an error.
func (r *Remote) Reconcile(ctx context.Context, repair bool, found func(ledger.Audit)) (Tally, error) {
	answer, err := r.Stream(ctx, http.MethodPost, "/admin/v1/reconcile?repair="+strconv.FormatBool(repair))
	if err != nil {
		return Tally{}, err
	}
	defer answer.Close()
	for decoder := json.NewDecoder(answer); ; {
		var line struct {
			Drift   *audit
			Error   *struct{ Code, Title string }
			Summary *Tally
		}
		err := decoder.Decode(&line)
		switch {
		case errors.Is(err, io.EOF):
			return Tally{}, fmt.Errorf("%w: the audit did not come to its end; the server's log may say why", like.ErrUnavailable)
		case err != nil:
			return Tally{}, fmt.Errorf("%w: the audit broke off: %w", like.ErrUnavailable, err)
		case line.Error != nil:
			return Tally{}, fmt.Errorf("%w: the audit failed: %s (%s); the server's log says more",
				like.ErrUnavailable, line.Error.Title, line.Error.Code)
		case line.Summary != nil:
			return *line.Summary, nil
		case line.Drift != nil:
			found(line.Drift.audit())
		}
	}
}

// ReconcileItem is [Remote.Reconcile] for one item.
func (r *Remote) ReconcileItem(ctx context.Context, item like.Item, repair bool, found func(ledger.Audit)) (Tally, error) {
	var sum Tally
	var answer audit
	err := r.Call(ctx, http.MethodPost, itemPath(item, "audit")+"?repair="+strconv.FormatBool(repair), nil, &answer)
	if err == nil {
		sum.add(answer.audit(), found)
	}
	return sum, err
}

// EraseUser unlikes everything that a user likes, and returns how much that was.
func (r *Remote) EraseUser(ctx context.Context, user like.User) (int64, error) {
	return r.remove(ctx, "/admin/v1/users/"+url.PathEscape(string(user))+"/erase")
}

// RemoveItem unlikes an item for everyone, and returns how many likes that took.
func (r *Remote) RemoveItem(ctx context.Context, item like.Item) (int64, error) {
	return r.remove(ctx, itemPath(item, "remove"))
}

func (r *Remote) remove(ctx context.Context, path string) (int64, error) {
	var answer struct{ Removed int64 }
	err := r.Call(ctx, http.MethodPost, path, nil, &answer)
	return answer.Removed, err
}

func itemPath(item like.Item, last string) string {
	return "/admin/v1/items/" + url.PathEscape(item.Collection) + "/" + url.PathEscape(item.ID) + "/" + last
}

// Export streams every like of the server as lines. The caller closes it; a read
// fails when the server could not finish.
func (r *Remote) Export(ctx context.Context) (io.ReadCloser, error) {
	return r.Stream(ctx, http.MethodGet, "/admin/v1/export")
}

// Backup lets the server write a copy of its store into a new directory of its own
// machine.
func (r *Remote) Backup(ctx context.Context, dir string) error {
	return r.Call(ctx, http.MethodPost, "/admin/v1/backup", map[string]string{"dir": dir}, nil)
}

// Ready reports nil when the server can serve, else what it lacks.
func (r *Remote) Ready(ctx context.Context) error {
	return r.Call(ctx, http.MethodGet, "/readyz", nil, nil)
}
