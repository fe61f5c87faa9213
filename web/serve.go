package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"io/fs"
	"maps"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

const (
	fresh  = "public, max-age=300, stale-while-revalidate=86400" // a stable name
	pinned = "public, max-age=31536000, immutable"               // a name with a hash of the content
	asked  = "no-cache"                                          // a page
)

// policy lets a page run its own files and speak to its own server, and no more.
// There is no inline script or style, and no markup made from strings.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// types by extension. Not those of package mime, which asks the system it runs on.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".svg":  "image/svg+xml",
}

var hashed = regexp.MustCompile(`-[A-Za-z0-9_-]{8,}\.[a-z]+$`)

// Files is a set of files by URL path, all of them in memory. It is an
// [http.Handler] for GET and HEAD that answers other paths with 404, and is safe
// for concurrent use.
type Files struct {
	byPath map[string]*file
}

// file is one file, ready to be sent.
type file struct {
	header http.Header // of both forms
	plain  form
	zipped form // without a body where compressing does not help
}

// form is one encoding of a file.
type form struct {
	body []byte
	tag  string // strong, so it differs between the two forms
}

var (
	button  = sync.OnceValue(func() *Files { return load("dist/button", "/", true) })
	demo    = sync.OnceValue(func() *Files { return load("dist/demo", "/", false) })
	console = sync.OnceValue(func() *Files { return load("dist/console", "/console/", false) })
)

// Button is the module that pages of any origin load: /button.js, the same under a
// name with its hash, and /client.js.
func Button() *Files { return button() }

// Demo is the page of the demo at /, with its files in /assets/. It needs
// [Button] on the same listener.
func Demo() *Files { return demo() }

// Console is the operator's console at /console/.
func Console() *Files { return console() }

// Paths lists the paths that are served, sorted.
func (f *Files) Paths() []string {
	return slices.Sorted(maps.Keys(f.byPath))
}

// load reads a directory of dist. An index.html is served as its directory.
func load(dir, prefix string, crossSite bool) *Files {
	f := &Files{byPath: map[string]*file{}}
	err := fs.WalkDir(dist, dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := dist.ReadFile(name)
		if err != nil {
			return err
		}
		at := prefix + strings.TrimPrefix(name, dir+"/")
		f.byPath[strings.TrimSuffix(at, "index.html")] = newFile(path.Base(name), body, crossSite)
		return nil
	})
	if err != nil {
		panic(err) // the files are part of the program
	}
	return f
}

func newFile(name string, body []byte, crossSite bool) *file {
	f := &file{header: http.Header{}}
	h := f.header
	h.Set("Content-Type", types[path.Ext(name)])
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Vary", "Accept-Encoding")
	h.Set("Referrer-Policy", "no-referrer")
	switch {
	case path.Ext(name) == ".html":
		h.Set("Cache-Control", asked)
		h.Set("Content-Security-Policy", policy)
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
	case hashed.MatchString(name):
		h.Set("Cache-Control", pinned)
	default:
		h.Set("Cache-Control", fresh)
	}
	if crossSite {
		// Browsers load modules of other origins only with this; the file is public.
		h.Set("Access-Control-Allow-Origin", "*")
		h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	}
	sum := sha256.Sum256(body)
	tag := base64.RawURLEncoding.EncodeToString(sum[:16])
	f.plain = form{body, `"` + tag + `"`}
	if zipped := compress(body); len(zipped) < len(body) {
		f.zipped = form{zipped, `"` + tag + `-gz"`}
	}
	return f
}

// compress is done once per file, at its first use: what a compressor makes of the
// same bytes differs between versions, so it does not belong among committed files.
func compress(body []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	_, _ = w.Write(body)                                  // a buffer takes everything
	_ = w.Close()
	return b.Bytes()
}

// ServeHTTP implements [http.Handler].
func (f *Files) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	found := f.byPath[r.URL.Path]
	switch {
	case found == nil:
		http.NotFound(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	default:
		found.serve(w, r)
	}
}

func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	maps.Copy(h, f.header)
	form := f.plain
	if f.zipped.body != nil && acceptsGzip(r.Header.Values("Accept-Encoding")) {
		form = f.zipped
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("ETag", form.tag)
	if matches(r.Header.Values("If-None-Match"), form.tag) {
		h.Del("Content-Encoding")
		h.Del("Content-Type")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(form.body)))
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodGet {
		_, _ = w.Write(form.body) // who went away needs no answer
	}
}

// acceptsGzip reads Accept-Encoding: gzip, or anything, and not with a weight of 0.
func acceptsGzip(values []string) bool {
	accepted := false
	for item := range strings.SplitSeq(strings.Join(values, ","), ",") {
		coding, weight, _ := strings.Cut(strings.ToLower(item), ";")
		weight = strings.ReplaceAll(weight, " ", "")
		refused := strings.HasPrefix(weight, "q=0") && strings.Trim(weight, "q=0.") == ""
		switch strings.TrimSpace(coding) {
		case "gzip":
			return !refused
		case "*":
			accepted = !refused
		}
	}
	return accepted
}

// matches reports whether one of the tags is the given one; a weak tag matches too,
// as If-None-Match compares weakly.
func matches(values []string, tag string) bool {
	for item := range strings.SplitSeq(strings.Join(values, ","), ",") {
		item = strings.TrimPrefix(strings.TrimSpace(item), "W/")
		if item == tag || item == "*" {
			return true
		}
	}
	return false
}
