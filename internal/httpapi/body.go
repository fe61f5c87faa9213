package httpapi

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"
)

// readBody returns a JSON body of bounded size that arrived in bounded time. The
// result is text, so that names can be cut out of it without copying.
func (s *site) readBody(x *exchange, r *http.Request) (string, error) {
	if err := checkMedia(r); err != nil {
		return "", err
	}
	return s.readAll(x, r)
}

// refuseBody accepts the bodies that say nothing: none, and "{}".
func (s *site) refuseBody(x *exchange, r *http.Request) error {
	if r.ContentLength == 0 {
		return nil
	}
	text, err := s.readAll(x, r)
	if err != nil || strings.Trim(text, " \t\r\n") == "" {
		return err
	}
	if err := checkMedia(r); err != nil {
		return err
	}
	return decode(text, func(in *input) {
		in.object(func(key string) { in.unknown(key) })
	})
}

func (s *site) readAll(x *exchange, r *http.Request) (string, error) {
	// net/http takes the deadline off at the end of the body. Until then it also
	// bounds how long the server waits for what a refused request did not send. Not
	// every ResponseWriter has one; the request's own timeout holds there.
	_ = http.NewResponseController(x.ResponseWriter).SetReadDeadline(time.Now().Add(s.cfg.BodyTimeout))
	limit := s.cfg.MaxBodyBytes
	if r.ContentLength > limit {
		return "", refuse(bodyTooLarge, "the body is larger than %d bytes", limit)
	}
	var text strings.Builder
	if r.ContentLength > 0 {
		text.Grow(int(r.ContentLength))
	}
	_, err := io.Copy(&text, http.MaxBytesReader(x.ResponseWriter, r.Body, limit))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return "", refuse(bodyTooLarge, "the body is larger than %d bytes", limit)
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "", refuse(bodyTimeout, "the body did not arrive within %s", s.cfg.BodyTimeout)
	case err != nil:
		return "", refuse(invalidBody, "the body could not be read to its end")
	}
	return text.String(), nil
}

func checkMedia(r *http.Request) error {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return refuse(unsupportedMedia, "a compressed body is not accepted")
	}
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset, given := params["charset"]
	if err != nil || kind != "application/json" || given && !strings.EqualFold(charset, "utf-8") {
		return refuse(unsupportedMedia, "Content-Type must be application/json")
	}
	return nil
}
