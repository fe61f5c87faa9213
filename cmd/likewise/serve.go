package main

import (
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"likewise/internal/config"
	"likewise/internal/observe"
	"likewise/internal/server"
)

func serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the server",
		Long: "Runs the server until SIGTERM or Ctrl-C. The first start makes the data directory and the key that signs\n" +
			"tokens; nothing has to be configured. Every flag is also a variable (LIKEWISE_LISTEN) and a key of the\n" +
			"configuration file; docs/config.md lists them.",
		Example: "  likewise serve\n  likewise serve --listen :8080 --data-dir /var/lib/likewise\n  likewise serve --config likewise.yaml",
		Args:    needs(),
		RunE:    action(serve),
	}
	cmd.Flags().SortFlags = false
	config.AddFlags(cmd.Flags())
	return cmd
}

func serve(cmd *cobra.Command, _ []string) error {
	cfg, err := load(cmd)
	if err != nil {
		return err
	}
	ctx, stop := stoppable(cmd.Context()) // to be asked twice is no reason to stop in the middle
	defer stop()
	build := observe.ReadBuild(version)
	log := observe.NewLogger(os.Stderr, cfg.Log.Level, cfg.Log.Format)
	slog.SetDefault(log)
	log.Info("likewise", "version", build.Version, "revision", build.Revision, "go", build.Go, "settings", cfg)
	s, err := server.New(ctx, cfg.Config, server.Options{Log: log, Build: build})
	if err != nil {
		return err
	}
	if observe.IsTerminal(os.Stdout) {
		s.Greet(os.Stdout, cfg.Config, programName())
	}
	if err := s.Run(ctx); err != nil {
		return &failure{code: exitFailed} // the log has it
	}
	return nil
}
