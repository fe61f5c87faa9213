package config

import (
	"fmt"
	"strings"
)

const referenceHead = `# Settings

<!-- Generated from internal/config; rewrite with: go test ./internal/config -update -->

Every setting can be given in four places. Flags win over the environment, the environment over the file, the file over the
defaults. One rule turns the name in the file into the others: in a flag, dots and underscores become dashes; a variable is
in capitals, with underscores, behind ` + "`LIKEWISE_`" + `.

| place | example |
|---|---|
| flag | ` + "`--limits-user-rate 5`" + ` |
| environment | ` + "`LIKEWISE_LIMITS_USER_RATE=5`" + ` |
| file, named by ` + "`--config FILE` or `LIKEWISE_CONFIG`" + ` | ` + "`limits: {user_rate: 5}`" + ` |

A name that is not listed here is an error, and so is a value out of its range. ` + "`likewise config validate`" + ` says what is
wrong; ` + "`likewise config print`" + ` shows every effective value and where it comes from, with secrets masked.

Durations have a unit (` + "`500ms`, `5s`, `2m`" + `), sizes may have one (` + "`16KiB`, `64MiB`" + `). Lists are YAML lists in the file and
separated by commas elsewhere. Secrets are never values: settings name the files that hold them.
`

// Reference is docs/config.md: all settings with default, range and meaning.
func Reference() string {
	var b strings.Builder
	b.WriteString(referenceHead)
	section := "-"
	for i := range settings {
		s := &settings[i]
		in, _, nested := strings.Cut(s.key, ".")
		if !nested {
			in = ""
		}
		if in != section {
			section = in
			title := "Section " + in
			if in == "" {
				title = "General"
			}
			fmt.Fprintf(&b, "\n## %s\n\n| setting | default | range | meaning |\n|---|---|---|---|\n", title)
		}
		fmt.Fprintf(&b, "| `%s`<br>`--%s`<br>`%s` | %s | %s | %s |\n", s.key, s.flag, s.env, s.defaultText(), s.rangeText(), s.doc)
	}
	return b.String()
}

func (s *setting) defaultText() string {
	if s.def == "" {
		return "empty"
	}
	return strings.TrimSpace("`" + s.def + "` " + s.unit)
}

func (s *setting) rangeText() string {
	switch {
	case s.oneof != nil:
		return "`" + strings.Join(s.oneof, "`, `") + "`"
	case s.min != "":
		return s.min + " to " + s.max
	case s.max != "":
		return "up to " + s.max
	}
	return s.kind
}
