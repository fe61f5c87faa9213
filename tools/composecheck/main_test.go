package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFaults(t *testing.T) {
	const sound = `
name: x
services:
  a:
    image: registry.example:5000/a:1
    user: "65532:65532"
    ports: ["127.0.0.1:80:80", "[::1]:80:80"]
    healthcheck: {test: [CMD, a]}
`
	for _, tt := range []struct{ name, from, to, want string }{
		{"sound", "", "", ""},
		{"unknown attribute", "image:", "imagine:", "imagine"},
		{"unknown attribute of a check", "{test:", "{tset:", "tset"},
		{"wrong type", `["127.0.0.1:80:80", "[::1]:80:80"]`, "true", "ports"},
		{"undeclared network", "image:", "networks: [back]\n    image:", "undefined network"},
		{"undeclared secret", "image:", "secrets: [key]\n    image:", "undefined secret"},
		{"unknown dependency", "image:", "depends_on: [b]\n    image:", `undefined service "b"`},
		{"dependency without a condition", "image:", "depends_on: {a: {condition: service_happy}}\n    image:", "condition"},
		{"no tag", "a:1", "a", "no tag"},
		{"newest", "a:1", "a:latest", "no tag"},
		{"image's user", `user: "65532:65532"`, "read_only: true", "runs as root"},
		{"root", `"65532:65532"`, `"0:65532"`, "runs as root"},
		{"root by name", `"65532:65532"`, "root", "runs as root"},
		{"no health check", "healthcheck: {test: [CMD, a]}", "read_only: true", "no health check"},
		{"health check off", "{test: [CMD, a]}", "{disable: true}", "no health check"},
		{"open port", "127.0.0.1:80:80", "80:80", "open to other machines"},
		{"port on a network", "127.0.0.1:80:80", "192.0.2.1:80:80", "open to other machines"},
		{"privileged", "image:", "privileged: true\n    image:", "rights"},
		{"network of the machine", "image:", "network_mode: host\n    image:", "network of the machine"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := strings.Replace(sound, tt.from, tt.to, 1)
			if tt.from != "" && text == sound {
				t.Fatalf("%q is not in the sound file", tt.from)
			}
			path := filepath.Join(t.TempDir(), "compose.yaml")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			var got string
			if project, err := load(path); err != nil {
				got = err.Error()
			} else {
				got = strings.Join(check(project), "\n")
			}
			if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
				t.Errorf("found %q, want %q", got, tt.want)
			}
		})
	}
}
