package httpapi

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// eachParam calls f for every parameter of a raw query in order, decoded once. It
// stops at the first error, and refuses what net/url would drop or guess.
func eachParam(raw string, f func(name, value string) error) error {
	if raw == "" {
		return nil
	}
	for pair := range strings.SplitSeq(raw, "&") {
		name, value, _ := strings.Cut(pair, "=")
		name, err := unescapeQuery(name)
		if err != nil {
			return err
		}
		if value, err = unescapeQuery(value); err != nil {
			return err
		}
		if name == "" {
			return refuse(invalidQuery, "a parameter has no name")
		}
		if err := f(name, value); err != nil {
			return err
		}
	}
	return nil
}

func unescapeQuery(s string) (string, error) {
	if strings.Contains(s, ";") {
		return "", refuse(invalidQuery, "a semicolon must be written as %%3B")
	}
	text, err := url.QueryUnescape(s)
	if err != nil || !isText(text) {
		return "", refuse(invalidQuery, "a parameter is not percent-encoded UTF-8 without control characters")
	}
	return text, nil
}

// params returns the parameters of a query by name, of which only the given ones
// are accepted, each once.
func params(raw string, accepted ...string) (map[string]string, error) {
	if raw == "" {
		return nil, nil
	}
	values := map[string]string{}
	err := eachParam(raw, func(name, value string) error {
		if !slices.Contains(accepted, name) {
			return refuse(invalidQuery, "there is no parameter %q here", short(name))
		}
		if _, twice := values[name]; twice {
			return refuse(invalidQuery, "the parameter %q is given twice", name)
		}
		values[name] = value
		return nil
	})
	return values, err
}

// flag reads a boolean parameter; an absent one is false.
func flag(values map[string]string, name string) (bool, error) {
	switch text, ok := values[name]; {
	case !ok || text == "false":
		return false, nil
	case text == "true":
		return true, nil
	default:
		return false, refuse(invalidQuery, "%s must be true or false", name)
	}
}

// pageLimit reads the limit of a list request.
func (s *site) pageLimit(values map[string]string) (int, error) {
	text, ok := values["limit"]
	if !ok {
		return min(s.cfg.PageDefault, s.cfg.PageMax), nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > s.cfg.PageMax || strconv.Itoa(n) != text {
		return 0, refuse(invalidQuery, "limit must be a number from 1 to %d", s.cfg.PageMax)
	}
	return n, nil
}

// short cuts what a caller sent before it is quoted back.
func short(s string) string {
	if len(s) > 40 {
		return strings.ToValidUTF8(s[:40], "") + "…"
	}
	return s
}
