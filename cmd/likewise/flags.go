package main

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"likewise/internal/auth"
	"likewise/internal/config"
	"likewise/internal/like"
	"likewise/internal/observe"
	"likewise/internal/server"
	"likewise/internal/transfer"
)

// addSettings gives a command the flags of some settings, and --config.
func addSettings(cmd *cobra.Command, names ...string) {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.AddFlags(all)
	for _, name := range append(names, "config") {
		cmd.Flags().AddFlag(all.Lookup(name))
	}
}

// load reads the configuration; a wrong one is wrong usage.
func load(cmd *cobra.Command) (config.Effective, error) {
	cfg, err := config.Load(cmd.Flags(), os.Environ())
	if err != nil {
		return cfg, &failure{fmt.Errorf("wrong configuration:\n%w", err), exitUsage}
	}
	return cfg, nil
}

// access is the flags that say which server to talk to, and as whom.
type access struct {
	url, token, tokenFile string
}

// addAccess adds the flags; the URL is that of the listener that flag names.
func addAccess(cmd *cobra.Command, flag, variable, listener string) *access {
	a := &access{}
	cmd.Flags().StringVar(&a.url, flag, os.Getenv(variable),
		"URL of the server's "+listener+" listener ("+variable+"; default: the local server of the configuration)")
	cmd.Flags().StringVar(&a.token, "token", "", "token to use (LIKEWISE_TOKEN; default: made with the key in --data-dir)")
	cmd.Flags().StringVar(&a.tokenFile, "token-file", "", "file with the token to use")
	cmd.MarkFlagsMutuallyExclusive("token", "token-file")
	addSettings(cmd, "data-dir", "jwt-secret-file")
	return a
}

// given returns the token that was given, "" for none.
func (a *access) given() (string, error) {
	switch {
	case a.token != "":
		return a.token, nil
	case a.tokenFile != "":
		text, err := os.ReadFile(a.tokenFile)
		return strings.TrimSpace(string(text)), err
	}
	return os.Getenv("LIKEWISE_TOKEN"), nil
}

// operator returns the server's admin listener.
func (a *access) operator(cmd *cobra.Command) (*transfer.Remote, error) {
	cfg, err := load(cmd)
	if err != nil {
		return nil, err
	}
	token, err := a.given()
	if err != nil {
		return nil, err
	}
	return server.Admin(cfg.Config, a.url, token, auth.ScopeAdmin)
}

// needs accepts exactly the arguments that are named.
func needs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return fmt.Errorf("%s is missing", names[len(args)])
		case len(args) > len(names):
			return fmt.Errorf("%q is one argument too many", args[len(names)])
		}
		return nil
	}
}

// complete offers words for a flag in shells.
func complete(cmd *cobra.Command, flag string, words ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag does not exist
	}
}

// warnings is the log of commands that work without a server.
func warnings() *slog.Logger { return observe.NewLogger(os.Stderr, slog.LevelWarn, "text") }

// programName is how to call this program again.
func programName() string {
	if strings.Contains(filepath.ToSlash(os.Args[0]), "/go-build") {
		return "go run ./cmd/likewise"
	}
	return os.Args[0]
}

// parseItem reads collection/id.
func parseItem(text string) (like.Item, error) {
	collection, id, ok := strings.Cut(text, "/")
	item := like.Item{Collection: collection, ID: id}
	if !ok {
		return item, &failure{fmt.Errorf("%q is not an item; write collection/id, such as posts/42", text), exitUsage}
	}
	if err := item.Validate(); err != nil {
		return item, &failure{fmt.Errorf("item %q: %w", text, err), exitUsage}
	}
	return item, nil
}
