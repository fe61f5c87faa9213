package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

const (
	fileFlag = "config"
	fileEnv  = envPrefix + "CONFIG"
)

// otherEnv names the variables that are ours without being settings: of the
// client commands and of the tests.
var otherEnv = []string{
	fileEnv,
	envPrefix + "URL", envPrefix + "ADMIN_URL", envPrefix + "TOKEN",
	envPrefix + "HEAVY", envPrefix + "DATA", envPrefix + "REQUIRE", envPrefix + "BIN", envPrefix + "KILLS", envPrefix + "SEED",
	envPrefix + "TARGET", envPrefix + "TARGET_ADMIN", envPrefix + "TARGET_SECRET_FILE",
}

// serviceLink matches what Kubernetes puts into every pod beside a service that is
// called likewise or likewise-something; nobody wrote it by hand.
var serviceLink = regexp.MustCompile(`_SERVICE_HOST$|_SERVICE_PORT(_[A-Z0-9_]+)?$|_PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?$`)

// Effective is a configuration together with where each value came from.
type Effective struct {
	Config
	source map[string]string // by key; a missing one is a default
}

// AddFlags adds --config and one flag for each setting to fs.
func AddFlags(fs *pflag.FlagSet) {
	fs.String(fileFlag, "", "YAML file of settings, see docs/config.md")
	for i := range settings {
		s := &settings[i]
		usage := s.doc
		if s.unit != "" {
			usage += " (" + s.unit + ")"
		}
		flag := fs.VarPF(&flagValue{s, s.def}, s.flag, "", usage)
		if s.kind == "bool" {
			flag.NoOptDefVal = "true"
		}
	}
}

// flagValue keeps the text of a flag; Load gives it to the configuration.
type flagValue struct {
	setting *setting
	text    string
}

func (v *flagValue) String() string { return v.text }
func (v *flagValue) Type() string   { return v.setting.kind }

func (v *flagValue) Set(text string) error {
	v.text = text
	if v.setting.kind == tables {
		return nil // Load tells of mistakes without the text, which may hold passwords
	}
	return v.setting.set(new(Config), text)
}

// Load puts the layers together: the defaults, the file that --config or
// LIKEWISE_CONFIG names, the LIKEWISE_ variables of environ (as os.Environ gives
// them) and the flags of fs, to which AddFlags was applied; nil means no flags.
// The error lists every mistake that was found, one a line.
func Load(fs *pflag.FlagSet, environ []string) (Effective, error) {
	e := Effective{Config: DefaultConfig(), source: map[string]string{}}
	err := errors.Join(e.loadFile(fs, environ), e.loadEnv(environ), e.loadFlags(fs))
	if err == nil {
		err = e.Validate()
	}
	return e, err
}

// apply sets one setting; source is what `config print` shows.
func (e *Effective) apply(s *setting, text, source string) error {
	err := s.set(&e.Config, text)
	switch {
	case err != nil && s.kind == tables:
		return fmt.Errorf("%s: %s: %w", source, s.key, err)
	case err != nil:
		return fmt.Errorf("%s: %s: %w, not %q", source, s.key, err, maskURL(text))
	}
	e.source[s.key] = source
	return nil
}

func (e *Effective) loadFile(fs *pflag.FlagSet, environ []string) error {
	var path string
	for _, variable := range environ {
		if text, ok := strings.CutPrefix(variable, fileEnv+"="); ok {
			path = text
		}
	}
	if fs != nil && fs.Changed(fileFlag) {
		path = fs.Lookup(fileFlag).Value.String()
	}
	if path == "" {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("configuration file: %w; name an existing one with --%s or %s", err, fileFlag, fileEnv)
	}
	return e.loadYAML(path, text)
}

func (e *Effective) loadYAML(path string, text []byte) error {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, second yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil // nothing but comments
	case err != nil:
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: more than one YAML document; keep the first only", path)
	}
	if root := document.Content[0]; root.Tag != "!!null" {
		return e.loadMapping(path, "", root)
	}
	return nil
}

// loadMapping applies the settings of a YAML mapping; prefix is the section.
func (e *Effective) loadMapping(path, prefix string, node *yaml.Node) error {
	if node.Kind != yaml.MappingNode {
		return fmt.Errorf("%s:%d: %s must hold settings, each as `name: value`",
			path, node.Line, cmp.Or(strings.TrimSuffix(prefix, "."), "the file"))
	}
	var errs []error
	seen := map[string]bool{}
	for pair := range slices.Chunk(node.Content, 2) {
		name, value := pair[0], pair[1]
		key, place := prefix+name.Value, fmt.Sprintf("%s:%d", path, name.Line)
		s := lookup(key, settingKey)
		switch {
		case seen[key]:
			errs = append(errs, fmt.Errorf("%s: %s is there twice; keep one", place, key))
		case s != nil && s.kind == tables:
			errs = append(errs, e.loadTables(path, s, value))
		case s != nil:
			text, err := scalar(s, value)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %s: %w", place, key, err))
			} else if err := e.apply(s, text, place); err != nil {
				errs = append(errs, err)
			}
		case isSection(key):
			errs = append(errs, e.loadMapping(path, key+".", value))
		default:
			errs = append(errs, fmt.Errorf("%s: unknown setting %q%s", place, key, didYouMean(key, settingKey)))
		}
		seen[key] = true
	}
	return errors.Join(errs...)
}

func settingKey(s *setting) string { return s.key }
func settingEnv(s *setting) string { return s.env }

func isSection(key string) bool {
	return slices.ContainsFunc(settings, func(s setting) bool { return strings.HasPrefix(s.key, key+".") })
}

// scalar is the text of a value in the file; a YAML list becomes one text.
func scalar(s *setting, node *yaml.Node) (string, error) {
	switch {
	case node.Kind == yaml.ScalarNode && node.Tag != "!!null":
		return node.Value, nil
	case node.Kind == yaml.SequenceNode && (s.kind == "list" || s.kind == "URLs"):
		texts := make([]string, len(node.Content))
		for i, element := range node.Content {
			if element.Kind != yaml.ScalarNode || s.kind == "list" && strings.Contains(element.Value, ",") {
				return "", errors.New("must be a list of plain words")
			}
			texts[i] = element.Value
		}
		return strings.Join(texts, ","), nil
	case node.Tag == "!!null":
		return "", errors.New("has no value; leave the line out for the default")
	}
	return "", fmt.Errorf("must be a single %s", s.kind)
}

func (e *Effective) loadEnv(environ []string) error {
	var errs []error
	for _, variable := range environ {
		name, text, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, envPrefix) || slices.Contains(otherEnv, name) {
			continue
		}
		if s := lookup(name, settingEnv); s != nil {
			errs = append(errs, e.apply(s, text, "env "+name))
		} else if !serviceLink.MatchString(name) {
			errs = append(errs, fmt.Errorf("env %s: no such setting%s", name, didYouMean(name, settingEnv)))
		}
	}
	return errors.Join(errs...)
}

func (e *Effective) loadFlags(fs *pflag.FlagSet) error {
	if fs == nil {
		return nil
	}
	var errs []error
	for i := range settings {
		s := &settings[i]
		if f := fs.Lookup(s.flag); f != nil && f.Changed {
			errs = append(errs, e.apply(s, f.Value.String(), "flag --"+s.flag))
		}
	}
	return errors.Join(errs...)
}
