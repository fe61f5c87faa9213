package web

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func get(t *testing.T, files *Files, at string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://x"+at, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	files.ServeHTTP(w, r)
	return w.Result()
}

func read(t *testing.T, r *http.Response) []byte {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestEveryFile(t *testing.T) {
	for name, files := range map[string]*Files{"button": Button(), "demo": Demo(), "console": Console()} {
		if len(files.Paths()) < 2 {
			t.Errorf("%s has only %q: was dist built?", name, files.Paths())
		}
		for _, at := range files.Paths() {
			plain := get(t, files, at)
			body := read(t, plain)
			h := plain.Header
			if plain.StatusCode != http.StatusOK || len(body) == 0 || h.Get("Content-Type") == "" ||
				h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Vary") != "Accept-Encoding" || h.Get("Content-Encoding") != "" {
				t.Errorf("GET %s: %d %v, %d bytes", at, plain.StatusCode, h, len(body))
			}
			tag := h.Get("ETag")
			if again := get(t, files, at, "If-None-Match", `"other", W/`+tag); again.StatusCode != http.StatusNotModified || len(read(t, again)) > 0 {
				t.Errorf("GET %s with its tag: %d", at, again.StatusCode)
			}
			zipped := get(t, files, at, "Accept-Encoding", "br, gzip;q=0.5")
			if zipped.Header.Get("Content-Encoding") != "gzip" {
				continue // compressing makes tiny files larger
			}
			if zipped.Header.Get("ETag") == tag {
				t.Errorf("GET %s: both forms have the strong tag %s", at, tag)
			}
			z, err := gzip.NewReader(zipped.Body)
			if err != nil {
				t.Fatal(err)
			}
			if unzipped, err := io.ReadAll(z); err != nil || !bytes.Equal(unzipped, body) {
				t.Errorf("GET %s: the compressed form is another file (%v)", at, err)
			}
		}
	}
}

func TestButtonIsForAnyOrigin(t *testing.T) {
	r := get(t, Button(), "/button.js")
	for name, want := range map[string]string{
		"Access-Control-Allow-Origin":  "*",
		"Cross-Origin-Resource-Policy": "cross-origin",
		"Content-Type":                 "text/javascript; charset=utf-8",
		"Cache-Control":                fresh,
	} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if zipped := get(t, Button(), "/button.js", "Accept-Encoding", "gzip"); len(read(t, zipped)) > 6<<10 {
		t.Error("/button.js has more than 6 KiB")
	}
	same := slices.IndexFunc(Button().Paths(), func(at string) bool { return hashed.MatchString(at) })
	if same < 0 {
		t.Fatalf("no hashed name among %q", Button().Paths())
	}
	pin := get(t, Button(), Button().Paths()[same])
	if pin.Header.Get("Cache-Control") != pinned || pin.Header.Get("ETag") != r.Header.Get("ETag") {
		t.Errorf("the pinned button is another one, or not cached for good: %v", pin.Header)
	}
}

// TestPages also keeps what the policy forbids out of the pages.
func TestPages(t *testing.T) {
	inline := regexp.MustCompile(`(?i)<script(?:[^>]*[^>\w]src=)?[^>]*>[^<]+</script>|<style|\sstyle=|\son[a-z]+=|https?://`)
	linked := regexp.MustCompile(`(?:src|href)="\./([^"]+)"`)
	for at, files := range map[string]*Files{"/": Demo(), "/console/": Console()} {
		r := get(t, files, at)
		page := read(t, r)
		if r.Header.Get("Content-Security-Policy") != policy || r.Header.Get("Cache-Control") != asked {
			t.Errorf("GET %s: %v", at, r.Header)
		}
		if found := inline.Find(page); found != nil {
			t.Errorf("%s: the policy forbids %q", at, found)
		}
		links := linked.FindAllSubmatch(page, -1)
		if len(links) < 3 {
			t.Errorf("%s links %d files", at, len(links))
		}
		for _, link := range links {
			target := at + string(link[1])
			owner := files
			if path.Base(target) == "button.js" {
				owner = Button()
			} else if !hashed.MatchString(target) {
				t.Errorf("%s links %s, which has no hash", at, target)
			}
			if got := get(t, owner, target); got.StatusCode != http.StatusOK {
				t.Errorf("%s links %s: %d", at, target, got.StatusCode)
			}
		}
	}
}

func TestOtherRequests(t *testing.T) {
	for _, at := range []string{"/button", "/index.html", "/dist/button/button.js", "/../embed.go", "/assets/"} {
		if r := get(t, Demo(), at); r.StatusCode != http.StatusNotFound {
			t.Errorf("GET %s: %d", at, r.StatusCode)
		}
	}
	for method, want := range map[string]int{http.MethodHead: 200, http.MethodPost: 405, http.MethodOptions: 405} {
		w := httptest.NewRecorder()
		Demo().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, "http://x/", strings.NewReader("")))
		if w.Code != want || method == http.MethodHead && w.Body.Len() > 0 {
			t.Errorf("%s /: %d with %d bytes, want %d", method, w.Code, w.Body.Len(), want)
		}
	}
}

func TestAcceptsGzip(t *testing.T) {
	for value, want := range map[string]bool{
		"": false, "gzip": true, "br, GZIP": true, "gzip;q=0": false, "gzip; q=0.000": false, "gzip;q=0.1": true,
		"*": true, "*;q=0": false, "identity": false, "gzip;q=0, *": false, "*;q=0, gzip": true, "xgzip": false,
	} {
		if got := acceptsGzip([]string{value}); got != want {
			t.Errorf("%q: %t", value, got)
		}
	}
}
