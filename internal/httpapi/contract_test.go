package httpapi

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/google/go-cmp/cmp"
)

// contract checks requests and answers against one of the documents.
type contract struct {
	doc *openapi3.T
	mux *http.ServeMux // finds the operation of a request, apart from the code under test
}

// found is what the mux of a contract reports.
type found struct {
	route *routers.Route
	vars  map[string]string
}

type foundKey struct{}

var pathVariable = regexp.MustCompile(`\{(\w+)\}`)

var documents = sync.OnceValue(func() struct{ public, admin *contract } {
	openapi3filter.RegisterBodyDecoder("application/x-ndjson", func(body io.Reader, _ http.Header, _ *openapi3.SchemaRef, _ openapi3filter.EncodingFn) (any, error) {
		b, err := io.ReadAll(body)
		return string(b), err
	})
	return struct{ public, admin *contract }{newContract(publicDocument), newContract(adminDocument)}
})

func newContract(document []byte) *contract {
	text, err := toJSON(document)
	if err != nil {
		panic(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		panic(err)
	}
	if err := doc.Validate(context.Background()); err != nil {
		panic(err)
	}
	c := &contract{doc: doc, mux: http.NewServeMux()}
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			route := &routers.Route{Spec: doc, Path: path, PathItem: item, Method: method, Operation: operation}
			c.mux.HandleFunc(method+" "+path, func(_ http.ResponseWriter, r *http.Request) {
				f := r.Context().Value(foundKey{}).(*found)
				f.route, f.vars = route, map[string]string{}
				for _, m := range pathVariable.FindAllStringSubmatch(path, -1) {
					f.vars[m[1]] = r.PathValue(m[1])
				}
			})
		}
	}
	return c
}

// operation returns what the document says about a request, or nil.
func (c *contract) operation(r *http.Request) *found {
	f := &found{}
	if checkPath(r.URL.EscapedPath()) == nil {
		c.mux.ServeHTTP(httptest.NewRecorder(), r.WithContext(context.WithValue(r.Context(), foundKey{}, f)))
	}
	return f
}

// check fails the test when an accepted request is not one that the document
// allows, or when an answer is not one that it announces.
func (c *contract) check(t testing.TB, r *http.Request, body string, w *httptest.ResponseRecorder) {
	t.Helper()
	h := w.Header()
	if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("X-Request-Id") == "" || h.Get("Cache-Control") == "" || h.Get("Vary") == "" {
		t.Errorf("%s %s: headers of every answer are missing: %v", r.Method, r.RequestURI, h)
	}
	if w.Code >= 300 && w.Code < 400 || w.Code < 200 {
		t.Errorf("%s %s: status %d", r.Method, r.RequestURI, w.Code)
	}
	f := c.operation(r)
	if f.route == nil || r.Method == http.MethodHead {
		c.checkElsewhere(t, r, w)
		return
	}
	again := r.Clone(r.Context())
	again.Body = io.NopCloser(strings.NewReader(body))
	// No body, empty or not, is told by a missing content type.
	if strings.TrimSpace(body) == "" {
		again.Body = http.NoBody
		again.ContentLength = 0
	}
	options := &openapi3filter.Options{
		IncludeResponseStatus: true,
		AuthenticationFunc: func(_ context.Context, in *openapi3filter.AuthenticationInput) error {
			if in.RequestValidationInput.Request.Header.Get("Authorization") == "" {
				return in.NewError(nil)
			}
			return nil
		},
	}
	in := &openapi3filter.RequestValidationInput{
		Request: again, PathParams: f.vars, QueryParams: again.URL.Query(), Route: f.route, Options: options,
	}
	if w.Code < 300 {
		if err := openapi3filter.ValidateRequest(t.Context(), in); err != nil {
			t.Errorf("%s %s was accepted, but the document does not allow it: %v", r.Method, r.RequestURI, err)
		}
	}
	out := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: w.Code, Header: h, Options: options,
	}
	out.SetBodyBytes(w.Body.Bytes())
	if err := openapi3filter.ValidateResponse(t.Context(), out); err != nil {
		t.Errorf("%s %s: answer %d is not in the document: %v", r.Method, r.RequestURI, w.Code, err)
	}
}

// checkElsewhere checks answers where the document names no operation.
func (c *contract) checkElsewhere(t testing.TB, r *http.Request, w *httptest.ResponseRecorder) {
	t.Helper()
	if r.Method == http.MethodHead || w.Code == http.StatusNoContent {
		return
	}
	if w.Code < 400 {
		t.Errorf("%s %s: answer %d, but the document has no such operation", r.Method, r.RequestURI, w.Code)
		return
	}
	if kind := w.Header().Get("Content-Type"); kind != "application/problem+json; charset=utf-8" {
		t.Errorf("%s %s: Content-Type %q of an error", r.Method, r.RequestURI, kind)
	}
	var value any
	answer{w, nil}.tryJSON(t, &value)
	schema := c.doc.Components.Schemas["Problem"].Value
	if err := schema.VisitJSON(value); err != nil {
		t.Errorf("%s %s: %v", r.Method, r.RequestURI, err)
	}
}

// TestDocumentsNameEveryRoute compares the documents with the tables of routes.
func TestDocumentsNameEveryRoute(t *testing.T) {
	for name, tt := range map[string]struct {
		contract *contract
		routes   []route
	}{
		"public": {documents().public, (&api{}).routes()},
		"admin":  {documents().admin, (&admin{}).routes()},
	} {
		var documented, served []string
		for path, item := range tt.contract.doc.Paths.Map() {
			for method := range item.Operations() {
				documented = append(documented, method+" "+path)
			}
		}
		for _, rt := range tt.routes {
			served = append(served, rt.pattern)
		}
		slices.Sort(documented)
		slices.Sort(served)
		if d := cmp.Diff(documented, served); d != "" {
			t.Errorf("%s (-documented +served)\n%s", name, d)
		}
	}
}

// TestDocumentListsEveryCode compares the table of the document with the problems.
func TestDocumentListsEveryCode(t *testing.T) {
	text := documents().public.doc.Info.Description
	for _, p := range allProblems() {
		public := p != clientGone && p != unsupported
		if got := strings.Contains(text, "`"+p.code+"`"); got != public {
			t.Errorf("code %s in the document: %v, want %v", p.code, got, public)
		}
	}
}

func TestDocumentsAreServed(t *testing.T) {
	once(t, func(s *service) {
		for _, c := range []call{
			{method: http.MethodGet, target: "/v1/openapi.json"},
			{method: http.MethodGet, target: "/admin/v1/openapi.json", admin: true},
		} {
			var doc map[string]any
			s.do(c).decodeInto(&doc)
			if doc["openapi"] != "3.1.0" {
				t.Errorf("%s: %v", c.target, doc["openapi"])
			}
		}
	})
}

func query(pairs ...string) string {
	values := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		values.Add(pairs[i], pairs[i+1])
	}
	return values.Encode()
}
