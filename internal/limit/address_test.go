package limit

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func prefixes(list ...string) (out []netip.Prefix) {
	for _, s := range list {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

func TestClientAddr(t *testing.T) {
	proxies := prefixes("10.0.0.0/8", "fd00::/8")
	for _, tt := range []struct {
		name    string
		peer    string
		trusted []netip.Prefix
		forward []string
		want    string
	}{
		{"no proxy configured", "192.0.2.1:1234", nil, []string{"198.51.100.9"}, "192.0.2.1"},
		{"peer is no proxy", "192.0.2.1:1234", proxies, []string{"198.51.100.9"}, "192.0.2.1"},
		{"proxy without header", "10.0.0.1:1", proxies, nil, "10.0.0.1"},
		{"one entry", "10.0.0.1:1", proxies, []string{"198.51.100.9"}, "198.51.100.9"},
		{"forged left entry", "10.0.0.1:1", proxies, []string{"203.0.113.7, 198.51.100.9"}, "198.51.100.9"},
		{"two proxies", "10.0.0.1:1", proxies, []string{"203.0.113.7, 198.51.100.9, 10.9.9.9"}, "198.51.100.9"},
		{"several lines", "10.0.0.1:1", proxies, []string{"203.0.113.7", "198.51.100.9,10.1.1.1", "10.2.2.2"}, "198.51.100.9"},
		{"all trusted", "10.0.0.1:1", proxies, []string{"10.3.3.3, 10.2.2.2"}, "10.3.3.3"},
		{"with port", "10.0.0.1:1", proxies, []string{"198.51.100.9:4711"}, "198.51.100.9"},
		{"IPv6 with port", "10.0.0.1:1", proxies, []string{"[2001:db8::9]:4711"}, "2001:db8::9"},
		{"IPv6 proxy", "[fd00::1]:1", proxies, []string{"2001:db8::9"}, "2001:db8::9"},
		{"mapped peer", "[::ffff:10.0.0.1]:1", proxies, []string{"::ffff:198.51.100.9"}, "198.51.100.9"},
		{"zone", "[fe80::1%eth0]:1", nil, nil, "fe80::1"},
		{"malformed", "10.0.0.1:1", proxies, []string{"198.51.100.9, nobody"}, "10.0.0.1"},
		{"malformed behind the client", "10.0.0.1:1", proxies, []string{"nobody, 198.51.100.9"}, "198.51.100.9"},
		{"malformed behind a proxy", "10.0.0.1:1", proxies, []string{"unknown, 10.1.1.1"}, "10.0.0.1"},
		{"empty header", "10.0.0.1:1", proxies, []string{""}, "10.0.0.1"},
		{"empty entry", "10.0.0.1:1", proxies, []string{"198.51.100.9,"}, "10.0.0.1"},
		{"octal", "10.0.0.1:1", proxies, []string{"198.51.100.09"}, "10.0.0.1"},
		{"script", "10.0.0.1:1", proxies, []string{"<script>"}, "10.0.0.1"},
		{"no peer address", "@", proxies, []string{"198.51.100.9"}, "invalid IP"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &http.Request{RemoteAddr: tt.peer, Header: http.Header{
				"X-Forwarded-For": tt.forward,
				"X-Real-Ip":       {"203.0.113.1"},
				"Forwarded":       {"for=203.0.113.2"},
			}}
			if got := ClientAddr(r, tt.trusted).String(); got != tt.want {
				t.Fatalf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestKey(t *testing.T) {
	for addr, want := range map[string]string{
		"192.0.2.1":               "192.0.2.1",
		"::ffff:192.0.2.1":        "192.0.2.1",
		"2001:db8:1:2:3:4:5:6":    "2001:db8:1:2::/64",
		"2001:db8:1:2:ffff::":     "2001:db8:1:2::/64",
		"2001:db8:1:3::1":         "2001:db8:1:3::/64",
		"fe80::1%eth0":            "fe80::/64",
		"::1":                     "::/64",
		"2001:db8:1:2:3:4:5:6%ab": "2001:db8:1:2::/64",
	} {
		if got := Key(netip.MustParseAddr(addr)); got != want {
			t.Errorf("Key(%s) = %s, want %s", addr, got, want)
		}
	}
	if got := Key(netip.Addr{}); got != "unknown" {
		t.Errorf("Key of no address = %s", got)
	}
}

// FuzzClientAddr: without a trusted proxy no header may matter, and with one the
// answer is the peer or an address that the header has; what a client wrote to the
// left of the address that the proxy added never counts.
func FuzzClientAddr(f *testing.F) {
	f.Add("10.0.0.1:1", "203.0.113.7, 198.51.100.9")
	f.Add("[fd00::1]:1", "::ffff:1.2.3.4 , ,")
	f.Add("192.0.2.1:1", "1.2.3.4:99,[::1%lo]:1")
	f.Add("@", "")
	f.Fuzz(func(t *testing.T, peer, forward string) {
		bare := &http.Request{RemoteAddr: peer}
		r := &http.Request{RemoteAddr: peer, Header: http.Header{"X-Forwarded-For": {forward}}}
		if got, want := ClientAddr(r, nil), ClientAddr(bare, nil); got != want {
			t.Fatalf("header believed without a proxy: %s, want %s", got, want)
		}
		everybody := prefixes("0.0.0.0/0", "::/0")
		got := ClientAddr(r, everybody)
		entries := strings.FieldsFunc(forward, func(c rune) bool { return c == ',' })
		if got != ClientAddr(bare, nil) && !slices.ContainsFunc(entries, func(e string) bool {
			addr, ok := parseAddr(strings.Trim(e, " \t"))
			return ok && addr == got
		}) {
			t.Fatalf("%s comes from nowhere", got)
		}
		if got.Zone() != "" || got.Is4In6() {
			t.Fatalf("%s is not in its plain form", got)
		}
		r.RemoteAddr = "10.0.0.1:1"
		r.Header["X-Forwarded-For"] = []string{forward + ",198.51.100.9"}
		if got := ClientAddr(r, prefixes("10.0.0.0/8")).String(); got != "198.51.100.9" {
			t.Fatalf("forged address %s believed", got)
		}
	})
}
