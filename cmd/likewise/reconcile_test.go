package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestReconcileThatStopped: a run that met too much drift says so, and that it
// found some.
func TestReconcileThatStopped(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"summary":{"items":9,"drifted":2,"repaired":2,"stopped":"stopped after correcting 2 items"}}`+"\n")
	}))
	defer server.Close()
	var out bytes.Buffer
	root := newRoot()
	root.SetOut(&out)
	if code := execute(root, []string{"reconcile", "--admin-url", server.URL, "--token", "x"}); code != exitDrift {
		t.Errorf("exit code %d, want %d", code, exitDrift)
	}
	if want := "9 items audited, 2 differed, 2 corrected\nstopped after correcting 2 items\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}
