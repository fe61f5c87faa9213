package limit

import (
	"net/http"
	"net/netip"
	"strings"
)

// ClientAddr returns the address that a request comes from: the peer of the
// connection, or, when the peer is a trusted proxy, the nearest address of
// X-Forwarded-For that is not one. It reads that header from the right, where the
// proxies write; if all of it is trusted, the left-most counts. An entry that is
// no address makes it fall back to the peer. Other headers (X-Real-IP, Forwarded)
// are ignored. IPv4 in IPv6 is unmapped, zones are dropped, and trusted prefixes
// are expected in that form. A peer without an address gives the zero Addr.
func ClientAddr(r *http.Request, trusted []netip.Prefix) netip.Addr {
	peer := peerAddr(r.RemoteAddr)
	if !contains(trusted, peer) {
		return peer
	}
	client := peer
	lines := r.Header.Values("X-Forwarded-For")
	for i := len(lines) - 1; i >= 0; i-- {
		for rest, more := lines[i], true; more; {
			var entry string
			rest, entry, more = cutLast(rest)
			addr, ok := parseAddr(strings.Trim(entry, " \t"))
			if !ok {
				return peer
			}
			client = addr
			if !contains(trusted, client) {
				return client
			}
		}
	}
	return client
}

// Key returns the limiter key of an address: IPv4 as it is, IPv6 by its /64,
// because one subscriber has at least that many. All requests without an address
// share one key.
func Key(addr netip.Addr) string {
	addr = addr.Unmap().WithZone("")
	if !addr.IsValid() {
		return "unknown"
	}
	if addr.Is4() {
		return addr.String()
	}
	return netip.PrefixFrom(addr, 64).Masked().String()
}

func peerAddr(hostport string) netip.Addr {
	ap, err := netip.ParseAddrPort(hostport)
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap().WithZone("")
}

// parseAddr reads one entry of X-Forwarded-For, to which some proxies add a port.
func parseAddr(s string) (netip.Addr, bool) {
	addr, err := netip.ParseAddr(s)
	if err != nil {
		addr = peerAddr(s)
	}
	return addr.Unmap().WithZone(""), addr.IsValid()
}

// cutLast splits s at its last comma into what is before and after it.
func cutLast(s string) (before, last string, found bool) {
	if i := strings.LastIndexByte(s, ','); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return "", s, false
}

func contains(prefixes []netip.Prefix, addr netip.Addr) bool {
	for _, p := range prefixes {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}
