package config

import (
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
)

// Print writes the effective settings as YAML that Load reads, each with its
// source behind it. Passwords and queries of URLs are masked.
func (e Effective) Print(w io.Writer) error {
	var b strings.Builder
	section := ""
	for i := range settings {
		s := &settings[i]
		name, indent := s.key, ""
		if in, rest, ok := strings.Cut(s.key, "."); ok {
			if in != section {
				fmt.Fprintf(&b, "%s:\n", in)
			}
			section, name, indent = in, rest, "  "
		}
		source := e.source[s.key]
		if source == "" {
			source = "default"
		}
		fmt.Fprintf(&b, "%s%s: %s # %s\n", indent, name, s.yaml(&e.Config), source)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// yaml writes the setting's value as YAML.
func (s *setting) yaml(c *Config) string {
	switch text := s.masked(c); s.kind {
	case "list":
		quoted := splitList(text)
		for i := range quoted {
			quoted[i] = strconv.Quote(quoted[i])
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	case "string", "URL", "URLs":
		return strconv.Quote(text)
	default:
		return text
	}
}

// masked is the setting's value as people may see it.
func (s *setting) masked(c *Config) string {
	switch v := s.field(c).(type) {
	case *URL:
		return v.String()
	case *URLs:
		return v.String()
	case *MirrorTables:
		return v.String()
	}
	if s.kind != "list" {
		return maskURL(s.text(c))
	}
	list := splitList(s.text(c))
	for i := range list {
		list[i] = maskURL(list[i])
	}
	return strings.Join(list, ",")
}

// LogValue logs what differs from the defaults, masked as by Print.
func (e Effective) LogValue() slog.Value {
	var attrs []slog.Attr
	for i := range settings {
		s := &settings[i]
		if _, said := e.source[s.key]; said {
			attrs = append(attrs, slog.String(s.key, s.masked(&e.Config)))
		}
	}
	return slog.GroupValue(attrs...)
}
