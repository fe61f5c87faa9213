package deploy

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"likewise/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

func root(t *testing.T) string {
	t.Helper()
	dir, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{root(t)}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// goRun runs the go command in the module and returns its lines.
func goRun(t *testing.T, args ...string) []string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = root(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %v: %v", args, err)
	}
	return strings.Fields(string(out))
}

// TestImageHasEverySource compares what the program is made of with what the image
// is built from: nothing else would notice a new package before somebody builds one.
func TestImageHasEverySource(t *testing.T) {
	dockerfile, ignored := read(t, "deploy", "Dockerfile"), read(t, "deploy", "Dockerfile.dockerignore")
	const format = `{{$p := .}}{{with .Module}}{{if .Main}}{{range $p.GoFiles}}{{$p.Dir}}/{{.}} {{end}}{{range $p.EmbedFiles}}{{$p.Dir}}/{{.}} {{end}}{{end}}{{end}}`
	sources := goRun(t, "list", "-deps", "-f", format, "./cmd/likewise")
	if len(sources) < 50 {
		t.Fatalf("only %d source files were listed", len(sources))
	}
	for _, source := range sources {
		name, err := filepath.Rel(root(t), source)
		if err != nil {
			t.Fatal(err)
		}
		name = filepath.ToSlash(name)
		top, _, _ := strings.Cut(name, "/")
		if !strings.Contains(dockerfile, "\nCOPY "+top+" "+top+"\n") || !strings.Contains(ignored, "\n!"+top+"\n") {
			t.Errorf("%s is part of the program; Dockerfile needs `COPY %s %s`, and Dockerfile.dockerignore `!%s`", name, top, top, top)
		}
		if strings.HasSuffix(name, "_test.go") || strings.Contains(name, "/testdata/") || strings.HasPrefix(name, "web/node_modules/") {
			t.Errorf("%s is part of the program, and Dockerfile.dockerignore leaves it out", name)
		}
	}
}

// TestImageIsPlain holds what people rely on: the Go that the module asks for, a
// version of every base, a user that is not root, and a health check.
func TestImageIsPlain(t *testing.T) {
	dockerfile := read(t, "deploy", "Dockerfile")
	version := goRun(t, "list", "-m", "-f", "{{.GoVersion}}")[0]
	if minor := version[:strings.LastIndex(version, ".")]; !strings.Contains(dockerfile, "FROM golang:"+minor+"-") {
		t.Errorf("go.mod asks for Go %s; build the image FROM golang:%s-…", version, minor)
	}
	for _, base := range regexp.MustCompile(`(?m)^FROM (\S+)`).FindAllStringSubmatch(dockerfile, -1) {
		if name, tag, _ := strings.Cut(base[1], ":"); name != "scratch" && (tag == "" || tag == "latest") {
			t.Errorf("base image %s has no version", base[1])
		}
	}
	last := dockerfile[strings.LastIndex(dockerfile, "\nFROM "):]
	for _, line := range []string{`USER [1-9][0-9]*:[1-9][0-9]*`, `HEALTHCHECK .*CMD \["/usr/local/bin/likewise", "healthcheck"\]`, `ENTRYPOINT \["/usr/local/bin/likewise"\]`} {
		if !regexp.MustCompile(`(?m)^` + line + `$`).MatchString(last) {
			t.Errorf("the image has no line %s", line)
		}
	}
}

// service is what the test reads of a Compose file.
type service struct {
	Environment map[string]string
	Secrets     []string
}

// TestComposedNodesHaveValidSettings gives the program the environment that Compose
// would give it.
func TestComposedNodesHaveValidSettings(t *testing.T) {
	var file struct{ Services map[string]service }
	if err := yaml.Unmarshal([]byte(read(t, "deploy", "compose.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"node1", "node2"} {
		node := file.Services[name]
		var env []string
		for variable, value := range node.Environment {
			env = append(env, variable+"="+value)
			for _, path := range regexp.MustCompile(`/run/secrets/(\w+)`).FindAllStringSubmatch(value, -1) {
				if !slices.Contains(node.Secrets, path[1]) {
					t.Errorf("%s: %s reads the secret %s, which the service is not given", name, variable, path[1])
				}
			}
		}
		for _, want := range []string{"LIKEWISE_LEDGER", "LIKEWISE_REDIS", "LIKEWISE_JWT_SECRET_FILE"} {
			if node.Environment[want] == "" {
				t.Errorf("%s has no %s", name, want)
			}
		}
		cmd := exec.Command(harness.Binary(t), "config", "validate")
		cmd.Env = env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// TestSecretsAreMadeOnce runs the script that Compose's secrets come from.
func TestSecretsAreMadeOnce(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("skipped: the script is for a shell")
	}
	dir := t.TempDir()
	script := filepath.Join(dir, "make-secrets")
	if err := os.WriteFile(script, []byte(read(t, "deploy", "make-secrets")), 0o700); err != nil {
		t.Fatal(err)
	}
	made := func() map[string]string {
		if out, err := exec.Command("sh", script).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		all := map[string]string{}
		for _, name := range []string{"token_key", "postgres_password", "pgpass"} {
			text, err := os.ReadFile(filepath.Join(dir, "secrets", name))
			if err != nil {
				t.Fatal(err)
			}
			all[name] = strings.TrimSpace(string(text))
		}
		return all
	}
	first, second := made(), made()
	if !maps.Equal(first, second) {
		t.Error("a second run changed the secrets")
	}
	if first["pgpass"] != "*:*:*:likewise:"+first["postgres_password"] || len(first["token_key"]) < 32 || len(first["postgres_password"]) < 32 {
		t.Error("the secrets do not fit one another, or are too short")
	}
	if info, err := os.Stat(filepath.Join(dir, "secrets")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory is open to others: %v, %v", info.Mode(), err)
	}
}
