package main

import (
	"cmp"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"likewise/internal/observe"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Say which build this is",
		Example: "  likewise version",
		Args:    needs(),
		RunE: action(func(cmd *cobra.Command, _ []string) error {
			b := observe.ReadBuild(version)
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "likewise %s, revision %s, %s, %s/%s\n",
				cmp.Or(b.Version, "(unknown)"), cmp.Or(b.Revision, "(unknown)"), b.Go, runtime.GOOS, runtime.GOARCH)
			return err
		}),
	}
}
