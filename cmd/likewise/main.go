// Command likewise is the backend of a like button: the server, and the tools to
// operate one. Each command has a file of its own that only connects flags with
// packages; what a command does is in internal.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// The exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
	exitDrift  = 3
)

// version is that of a release; the linker sets it.
var version string

func main() { os.Exit(execute(newRoot(), os.Args[1:])) }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "likewise",
		Short: "The backend of a like button",
		Long: "likewise counts likes exactly, answers fast, and keeps both through crashes.\n" +
			"`likewise serve` is all it takes; the other commands help to operate it.",
		Example:           "  likewise demo\n  likewise serve\n  likewise token alice\n  likewise import likes.ndjson.gz",
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: false},
	}
	root.AddCommand(
		serveCommand(), demoCommand(), tokenCommand(), importCommand(), exportCommand(), moveCommand(), reconcileCommand(),
		backupCommand(), restoreCommand(), eraseUserCommand(), removeItemCommand(),
		healthcheckCommand(), configCommand(), versionCommand(),
	)
	return root
}

// execute runs a command line and returns the exit code. The first signal asks the
// command to stop; the second ends it, unless it looks after signals itself.
func execute(root *cobra.Command, args []string) int {
	ctx, stop := stoppable(context.Background())
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	f, ran := errors.AsType[*failure](err)
	switch {
	case !ran:
		fmt.Fprintf(os.Stderr, "likewise: %v\nSee `%s --help`.\n", err, cmd.CommandPath())
		return exitUsage
	case f.error != nil:
		fmt.Fprintf(os.Stderr, "likewise: %v\n", f.error)
	}
	return f.code
}

// stoppable returns a context that ends with the first signal to stop. Until stop is
// called no further one has an effect.
func stoppable(ctx context.Context) (stopping context.Context, stop context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
}

// failure is what a command that ran came to. Every other error is wrong usage.
type failure struct {
	error // nil when it was told already
	code  int
}

// Unwrap lets the cause be found.
func (f *failure) Unwrap() error { return f.error }

// action makes a command's function one whose errors are failures.
func action(run func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := run(cmd, args)
		if _, known := errors.AsType[*failure](err); err == nil || known {
			return err
		}
		return &failure{err, exitFailed}
	}
}
