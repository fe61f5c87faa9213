package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"likewise/internal/auth"
	"likewise/internal/like"
	"likewise/internal/server"
)

func tokenCommand() *cobra.Command {
	var scopes []string
	var ttl time.Duration
	cmd := &cobra.Command{
		Use:   "token USER",
		Short: "Print a token for a user",
		Long: "Prints a token, and nothing else, with which USER may like things for a while. It is signed with the key that\n" +
			"the server of the data directory made at its first start.\n\nScopes: " + strings.Join(auth.Scopes(), ", ") + ".",
		Example: "  likewise token alice\n  likewise token backend --scope \"likes:write:any likes:import\" --ttl 24h",
		Args:    needs("USER"),
		RunE: action(func(cmd *cobra.Command, args []string) error {
			cfg, err := load(cmd)
			if err != nil {
				return err
			}
			token, err := server.Token(cfg.Config, like.User(args[0]), strings.Fields(strings.Join(scopes, " ")), ttl)
			if err == nil {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), token)
			}
			return err
		}),
	}
	cmd.Flags().StringArrayVar(&scopes, "scope", nil, "what the token allows beyond liking as USER; may be repeated")
	cmd.Flags().DurationVar(&ttl, "ttl", time.Hour, "how long the token lives")
	addSettings(cmd, "data-dir", "jwt-secret-file", "jwt-issuer", "jwt-audience")
	complete(cmd, "scope", auth.Scopes()...)
	return cmd
}
