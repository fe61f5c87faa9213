package config

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
)

func TestMaskURL(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "",
		"pebble":                          "pebble",
		"./keys.json":                     "./keys.json",
		"https://h/p":                     "https://h/p",
		"https://u@h/p":                   "https://u@h/p",
		"https://u:p@h/p?q=1":             "https://u:***@h/p?***",
		"http://u:p@[broken/p1":           "http://u:***@[broken/p1",
		"postgres://u:p@h1:1,h2:2/d":      "postgres://u:***@h1:1,h2:2/d",
		"postgres://u:p@q@h/d":            "postgres://u:***@h/d",
		"postgres://u:p#q@h/d":            "postgres://u:***@h/d",
		"postgres://u:p/q@h/d":            "postgres://***",
		"postgres://u:p?q@h/d":            "postgres://***",
		"postgres://h/d,postgres://u:p@h": "postgres://***",
		"redis://:p@h:1":                  "redis://:***@h:1",
	} {
		if got := maskURL(text); got != want {
			t.Errorf("maskURL(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestURLsAreMaskedHoweverTheyAreShown(t *testing.T) {
	c := DefaultConfig()
	c.Ledger = splitURLs("postgres://u:hunter2@h1/d, postgres://u:hunter2@h2/d,host=h password=hunter2")
	c.Ledger = append(c.Ledger, "host=h password=hunter2")
	c.Postgres.Replicas = splitURLs("postgres://h/d?password=hunter2")
	c.Redis = "rediss://:hunter2@h:1,h:2"
	var out bytes.Buffer
	for _, form := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		fmt.Fprintf(&out, form+"\n", c)
		fmt.Fprintf(&out, form+form+form+"\n", c.Ledger, c.Ledger[0], c.Redis)
	}
	log := slog.New(slog.NewJSONHandler(&out, nil))
	log.Info("x", "ledger", c.Ledger, "first", c.Ledger[0], "redis", c.Redis)
	if text := out.String(); strings.Contains(text, "hunter2") || strings.Contains(text, fmt.Sprintf("%x", "hunter2")) {
		t.Errorf("a password is shown:\n%s", text)
	}
	if !strings.Contains(out.String(), `"redis":"rediss://:***@h:1,h:2"`) {
		t.Errorf("the log lacks the address:\n%s", out.String())
	}
}

func TestSplitURLs(t *testing.T) {
	for text, want := range map[string]URLs{
		"":                                  nil,
		" pebble ":                          {"pebble"},
		"postgres://a/x":                    {"postgres://a/x"},
		"postgres://a/x , postgres://b/x":   {"postgres://a/x", "postgres://b/x"},
		"postgres://a:1,b:2/x,postgres://c": {"postgres://a:1,b:2/x", "postgres://c"},
		"pebble,postgres://c":               {"pebble", "postgres://c"},
		"a,b":                               {"a,b"},
	} {
		if got := splitURLs(text); !slices.Equal(got, want) {
			t.Errorf("splitURLs(%q) = %#v, want %#v", text, []URL(got), []URL(want))
		}
	}
}

// FuzzMaskURL checks that a password is not shown, whatever signs it has.
func FuzzMaskURL(f *testing.F) {
	for _, signs := range []string{"", "/", "?", "#", "@", ":", "=", "%", " ", ",b://c"} {
		f.Add(signs)
	}
	f.Fuzz(func(t *testing.T, signs string) {
		secret := "hunter2" + signs + "hunter2"
		for _, text := range []string{"postgres://user:" + secret + "@host/name?sslmode=disable", "postgres://host/name?password=" + secret} {
			if got := maskSecret(text); strings.Contains(got, "hunter2") {
				t.Errorf("%q is shown as %q", text, got)
			}
		}
	})
}
