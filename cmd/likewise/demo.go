package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"likewise/internal/config"
	"likewise/internal/demo"
	"likewise/internal/observe"
	"likewise/internal/server"
)

func demoCommand() *cobra.Command {
	crowd := demo.DefaultConfig()
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show what it does, with a page and a made-up crowd",
		Long: "Runs a server whose page at / has a feed to like and a crowd that likes it. Visitors need no account. The store\n" +
			"is in a temporary directory and is removed at the end.",
		Example: "  likewise demo\n  likewise demo --rate 2000",
		Args:    needs(),
		RunE:    action(func(cmd *cobra.Command, _ []string) error { return runDemo(cmd, crowd) }),
	}
	cmd.Flags().Float64Var(&crowd.Rate, "rate", crowd.Rate, fmt.Sprintf("likes a second that the crowd gives at first, 0 to %v; the page can change it", crowd.MaxRate))
	addSettings(cmd, "listen", "admin-listen", "log-level", "log-format")
	return cmd
}

func runDemo(cmd *cobra.Command, crowd demo.Config) (err error) {
	given, err := load(cmd)
	if err != nil {
		return err
	}
	if err := crowd.Validate(); err != nil {
		return &failure{err, exitUsage}
	}
	// Nothing else of a configuration counts, and none of its data is touched.
	cfg := config.DefaultConfig()
	cfg.Listen, cfg.AdminListen = given.Listen, given.AdminListen
	if cfg.DataDir, err = os.MkdirTemp("", "likewise-demo-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(cfg.DataDir)) }()
	ctx, stop := stoppable(cmd.Context())
	defer stop()
	log := observe.NewLogger(os.Stderr, given.Log.Level, given.Log.Format)
	s, err := server.New(ctx, cfg, server.Options{Log: log, Build: observe.ReadBuild(version), Demo: &crowd})
	if err != nil {
		return err
	}
	s.GreetDemo(cmd.OutOrStdout(), cfg, programName())
	if err := s.Run(ctx); err != nil {
		return &failure{code: exitFailed} // the log has it
	}
	return nil
}
