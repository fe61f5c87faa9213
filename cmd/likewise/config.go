package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"likewise/internal/config"
)

func configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "config",
		Short:   "Show or check the configuration",
		Example: "  likewise config print\n  likewise config validate --config likewise.yaml",
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return errors.New("say print or validate") },
	}
	cmd.AddCommand(
		configAction("print", "Show every effective setting and where it comes from",
			func(cmd *cobra.Command, cfg config.Effective) error { return cfg.Print(cmd.OutOrStdout()) }),
		configAction("validate", "Say what is wrong with the configuration, if anything",
			func(cmd *cobra.Command, _ config.Effective) error {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), "the configuration is valid")
				return err
			}),
	)
	return cmd
}

// configAction is a command that takes every setting, as serve does.
func configAction(name, short string, show func(*cobra.Command, config.Effective) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:     name,
		Short:   short,
		Example: "  likewise config " + name + " --config likewise.yaml",
		Args:    cobra.NoArgs,
		RunE: action(func(cmd *cobra.Command, _ []string) error {
			cfg, err := load(cmd)
			if err != nil {
				return err
			}
			return show(cmd, cfg)
		}),
	}
	cmd.Flags().SortFlags = false
	config.AddFlags(cmd.Flags())
	return cmd
}
