package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"likewise/internal/auth"
	"likewise/internal/config"
	"likewise/internal/like"
	"likewise/internal/observe"
	"likewise/internal/server"
	"likewise/internal/transfer"
)

func importCommand() *cobra.Command {
	in := transfer.DefaultImport("")
	var retryFor time.Duration
	var offline bool
	cmd := &cobra.Command{
		Use:   "import FILE|FILE.gz|-",
		Short: "Import likes from JSON lines",
		Long: "Imports one like a line: {\"collection\":\"posts\",\"id\":\"42\",\"user\":\"alice\",\"liked_at\":\"2026-01-31T12:00:00Z\"}.\n" +
			"Without liked_at a like gets the present time. A like that is there already keeps its own. Bad lines are\n" +
			"reported with their number and kept out, and the exit code is 1 then. An import that was interrupted goes on\n" +
			"where it stopped when it is started again; FILE.progress remembers where that was.",
		Example: "  likewise import likes.ndjson.gz\n  zcat likes.gz | likewise import - --url http://10.0.0.5:8080 --token-file token",
		Args:    needs("FILE"),
	}
	where := addAccess(cmd, "url", "LIKEWISE_URL", "public")
	cmd.RunE = action(func(cmd *cobra.Command, args []string) error {
		cfg, err := load(cmd)
		if err != nil {
			return err
		}
		in.Input, in.Terminal = args[0], observe.IsTerminal(os.Stderr)
		if offline {
			return importOffline(cmd, cfg.Config, in)
		}
		token, err := where.given()
		if err != nil {
			return err
		}
		to, err := server.Public(cfg.Config, where.url, token, auth.ScopeWriteAny, auth.ScopeImport)
		if err != nil {
			return err
		}
		to.RetryFor, to.Timeout = retryFor, time.Minute
		return importTo(cmd, in, to.Batch)
	})
	cmd.Flags().IntVar(&in.BatchSize, "batch", in.BatchSize, "lines sent together, at most 1000")
	cmd.Flags().IntVar(&in.InFlight, "in-flight", in.InFlight, "batches on their way at one time")
	cmd.Flags().DurationVar(&retryFor, "retry-for", time.Minute, "how long to wait for a server that is away or too busy")
	cmd.Flags().StringVar(&in.ProgressFile, "progress-file", "", "where to remember how far the import got (default FILE.progress; for -, nowhere)")
	cmd.Flags().BoolVar(&in.Restart, "restart", false, "begin at the first line, whatever the progress file says")
	cmd.Flags().BoolVar(&offline, "offline", false, "write into --data-dir, which no server has open")
	return cmd
}

func importOffline(cmd *cobra.Command, cfg config.Config, in transfer.ImportConfig) error {
	ledger, err := server.OpenLedger(cmd.Context(), cfg, warnings())
	if err != nil {
		return err
	}
	in.InFlight = 1 // nobody else is there to be waited for
	err = importTo(cmd, in, func(ctx context.Context, cmds []like.Command) error {
		_, err := ledger.ApplyMany(ctx, cmds)
		return err
	})
	return errors.Join(err, ledger.Close())
}

func importTo(cmd *cobra.Command, in transfer.ImportConfig, send transfer.Send) error {
	sum, err := transfer.Import(cmd.Context(), in, send)
	if err == nil || errors.Is(err, transfer.ErrBadLines) {
		fmt.Fprintf(cmd.OutOrStdout(), "%d lines: %d likes accepted, %d lines kept out\n", sum.Lines, sum.Accepted, sum.Bad)
		return err
	}
	return fmt.Errorf("%w\nWhat was accepted stays. Run the same command again to go on", err)
}
