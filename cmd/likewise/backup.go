package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"
)

func backupCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backup DIR",
		Short: "Let the server write a copy of its store",
		Long: "The server writes a copy that holds everything acknowledged until now into DIR, a new directory on its own\n" +
			"machine, while it goes on serving. Keys (token.key, cursor.key) are not in it: keep a copy of them apart.",
		Example: "  likewise backup /backups/likewise-$(date +%F)",
		Args:    needs("DIR"),
	}
	where := addAccess(cmd, "admin-url", "LIKEWISE_ADMIN_URL", "admin")
	cmd.RunE = action(func(cmd *cobra.Command, args []string) error {
		dir, err := filepath.Abs(args[0]) // the server may run in another directory
		if err != nil {
			return err
		}
		at, err := where.operator(cmd)
		if err != nil {
			return err
		}
		if err := at.Backup(cmd.Context(), dir); err != nil {
			return err
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "backup written to %s\n", dir)
		return err
	})
	return cmd
}
