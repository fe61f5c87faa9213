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
separated by commas elsewhere. Keys are never values: settings name the files that hold them. A password may be part of a
URL, and is masked wherever the URL is shown; in a password, write signs such as ` + "`/ ? # @ : %`" + ` percent-encoded (` + "`%2F`" + `).
`

const referenceFoot = `
## Fixed limits

These are part of the API's contract or protect the process from one caller, and cannot be set.

| what | limit |
|---|---|
| name of a collection | 32 bytes |
| id of an item, a user | 128 bytes |
| token; 431 above | 8 KiB |
| cursor of a list | 256 bytes |
| ` + "`X-Request-Id`" + ` that is taken over | 64 bytes |
| message on a WebSocket | 16 KiB; 5 a second, 20 at once |
| time that a client has to take 32 KiB of a long answer (export, reconcile) | 30 s |
| connections to the admin listener | 256 |
| requests to the admin listener | URL 8 KiB, body 1 MiB; 10 s for health and the console, no end for audits, erasures, exports and backups |
| reading ` + "`jwks`" + ` | 10 s and 1 MiB |
| time that a request with an unknown key waits for a reading of ` + "`jwks`" + ` | 100 ms |
| verified tokens that are remembered | 65,536 |
| users and addresses with a bucket of their own for each rate | 1,048,576 and 262,144; others share some until idle ones are forgotten |
| audits of everything that the console shows | 20 |
| wait before idle connections are closed at a shutdown | 250 ms |

A connection above a limit is closed without an answer.
`

// Reference is docs/config.md: all settings with default, range and meaning, and the
// limits that are none.
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
	b.WriteString(referenceFoot)
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
