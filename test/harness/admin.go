package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// DriftMetric counts the differences that audits found since the start. It stays
// 0 for ever, because a difference is a bug.
const DriftMetric = "likewise_drift_found_total"

// Erase unlikes everything that a user likes.
func (c *Client) Erase(ctx context.Context, user string) error {
	return c.everyNode(ctx, "/admin/v1/users/"+url.PathEscape(user)+"/erase")
}

// Remove unlikes an item for everyone.
func (c *Client) Remove(ctx context.Context, item Item) error {
	return c.everyNode(ctx, "/admin/v1/items/"+url.PathEscape(item.Collection)+"/"+url.PathEscape(item.ID)+"/remove")
}

// Reconcile audits everything on every node. An audit that came to no end is an error.
func (c *Client) Reconcile(ctx context.Context) error {
	for range c.admin {
		body, err := c.adminPost(ctx, "/admin/v1/reconcile")
		if err != nil {
			return err
		}
		lines := strings.Split(strings.TrimSpace(string(body)), "\n")
		var last struct {
			Summary *struct{ Stopped string }
		}
		end := lines[len(lines)-1]
		if err := json.Unmarshal([]byte(end), &last); err != nil || last.Summary == nil || last.Summary.Stopped != "" {
			return fmt.Errorf("the audit ends with %q", end)
		}
	}
	return nil
}

// adminPost sends a command to the next node.
func (c *Client) adminPost(ctx context.Context, path string) ([]byte, error) {
	r := Request{Method: http.MethodPost, Path: path, User: "operator", Scope: ScopeAdmin, Admin: true}
	res, err := c.Do(ctx, r)
	if err != nil {
		return nil, err
	}
	if res.Status/100 != 2 {
		return nil, problem(r, res)
	}
	return res.Body, nil
}

// everyNode sends a command to all nodes, one after the other.
func (c *Client) everyNode(ctx context.Context, path string) error {
	for range c.admin {
		if _, err := c.adminPost(ctx, path); err != nil {
			return err
		}
	}
	return nil
}

// Metric returns the sum of a metric over all nodes and label values. A metric
// that a node does not have is an error: a renamed one must not read as 0.
func (c *Client) Metric(ctx context.Context, name string) (float64, error) {
	sum := 0.0
	for range c.admin {
		res, err := c.Do(ctx, Request{Method: http.MethodGet, Path: "/metrics", Admin: true})
		if err != nil {
			return 0, err
		}
		one, err := sumOf(string(res.Body), name)
		if err != nil {
			return 0, err
		}
		sum += one
	}
	return sum, nil
}

func sumOf(exposition, name string) (float64, error) {
	sum, found := 0.0, false
	for line := range strings.Lines(exposition) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || rest[0] != ' ' && rest[0] != '{' {
			continue
		}
		text := rest[strings.LastIndexByte(strings.TrimSpace(rest), ' ')+1:]
		v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil {
			return 0, fmt.Errorf("metric %s: %w", name, err)
		}
		sum, found = sum+v, true
	}
	if !found {
		return 0, fmt.Errorf("no metric %s", name)
	}
	return sum, nil
}
