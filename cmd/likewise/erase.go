package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"likewise/internal/like"
)

func eraseUserCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "erase-user USER",
		Short:   "Take back everything that a user likes",
		Long:    "Unlikes everything that USER likes, as if USER had done so. It cannot be undone; it can be repeated.",
		Example: "  likewise erase-user alice",
		Args:    needs("USER"),
	}
	where := addAccess(cmd, "admin-url", "LIKEWISE_ADMIN_URL", "admin")
	cmd.RunE = action(func(cmd *cobra.Command, args []string) error {
		at, err := where.operator(cmd)
		if err != nil {
			return err
		}
		n, err := at.EraseUser(cmd.Context(), like.User(args[0]))
		if err == nil {
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d likes removed\n", n)
		}
		return err
	})
	return cmd
}
