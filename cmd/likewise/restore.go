package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"likewise/internal/server"
)

func restoreCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "restore DIR",
		Short: "Fill a data directory from a backup",
		Long: "Copies a backup into the data directory, which must not hold a store yet, and checks that it opens. No server may\n" +
			"run there. Keys that are in the data directory stay; without token.key the next start makes a new one, and\n" +
			"tokens of the old one are refused.",
		Example: "  likewise restore /backups/likewise-2026-01-31 --data-dir ./likewise-data",
		Args:    needs("DIR"),
		RunE: action(func(cmd *cobra.Command, args []string) error {
			cfg, err := load(cmd)
			if err != nil {
				return err
			}
			if err := server.Restore(cmd.Context(), cfg.Config, server.Options{Log: warnings()}, args[0]); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "restored into %s; start `likewise serve` there\n", cfg.DataDir)
			return err
		}),
	}
	addSettings(cmd, "data-dir")
	return cmd
}
