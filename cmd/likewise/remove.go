package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func removeItemCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "remove-item COLLECTION/ID",
		Short:   "Take back every like of an item",
		Long:    "Unlikes an item for everyone who likes it. It cannot be undone; it can be repeated.",
		Example: "  likewise remove-item posts/42",
		Args:    needs("COLLECTION/ID"),
	}
	where := addAccess(cmd, "admin-url", "LIKEWISE_ADMIN_URL", "admin")
	cmd.RunE = action(func(cmd *cobra.Command, args []string) error {
		item, err := parseItem(args[0])
		if err != nil {
			return err
		}
		at, err := where.operator(cmd)
		if err != nil {
			return err
		}
		n, err := at.RemoveItem(cmd.Context(), item)
		if err == nil {
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d likes removed\n", n)
		}
		return err
	})
	return cmd
}
