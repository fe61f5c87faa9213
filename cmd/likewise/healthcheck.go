package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"likewise/internal/server"
)

func healthcheckCommand() *cobra.Command {
	var url string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:     "healthcheck",
		Short:   "Ask a server whether it is ready",
		Long:    "Ends with 0 when the server is ready and with 1 when it is not, and says why. Meant for containers.",
		Example: "  likewise healthcheck\n  likewise healthcheck --admin-url http://127.0.0.1:9090",
		Args:    needs(),
		RunE: action(func(cmd *cobra.Command, _ []string) error {
			cfg, err := load(cmd)
			if err != nil {
				return err
			}
			at, err := server.Admin(cfg.Config, url, "")
			if err != nil {
				return err
			}
			at.Timeout = timeout
			if err := at.Ready(cmd.Context()); err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "ready")
			return err
		}),
	}
	cmd.Flags().StringVar(&url, "admin-url", os.Getenv("LIKEWISE_ADMIN_URL"),
		"URL of the server's admin listener (LIKEWISE_ADMIN_URL; default: the local server of the configuration)")
	cmd.Flags().DurationVar(&timeout, "timeout", 2*time.Second, "how long to wait for the answer")
	addSettings(cmd, "admin-listen")
	return cmd
}
