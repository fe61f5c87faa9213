// Command clockahead is the server with a wall clock that runs ahead, for the
// scenario of a machine whose clock was wrong and is put right. It takes the
// arguments of likewise, of which serve is the only command, and --ahead.
//
// The usual tool for that, an intercepted clock, does not reach a program that is
// linked statically. So everything here is the product as it is assembled
// everywhere, apart from the one function that tells the ledger the time.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"likewise/internal/config"
	"likewise/internal/observe"
	"likewise/internal/server"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "clockahead:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := pflag.NewFlagSet("clockahead", pflag.ContinueOnError)
	config.AddFlags(flags)
	ahead := flags.Duration("ahead", 0, "how far the clock of the ledger runs ahead")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 || flags.Arg(0) != "serve" {
		return fmt.Errorf("%q: serve is the only command", flags.Args())
	}
	cfg, err := config.Load(flags, os.Environ())
	if err != nil {
		return err
	}
	s, err := server.New(ctx, cfg.Config, server.Options{
		Log:   observe.NewLogger(os.Stderr, cfg.Log.Level, cfg.Log.Format),
		Build: observe.ReadBuild(""),
		Now:   func() time.Time { return time.Now().Add(*ahead) },
	})
	if err != nil {
		return err
	}
	return s.Run(ctx)
}
