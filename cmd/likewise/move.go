package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"likewise/internal/like"
	"likewise/internal/move"
	"likewise/internal/observe"
	"likewise/internal/server"
)

func moveCommand() *cobra.Command {
	how := move.DefaultConfig()
	var from, to server.Place
	var fromToken, toToken access
	var verify string
	cmd := &cobra.Command{
		Use:   "move --from PLACE --to PLACE",
		Short: "Move all likes to another store while they are served",
		Long: "Makes the target hold exactly the likes of the source, with their times. A PLACE is the URL of a PostgreSQL\n" +
			"database (several with commas between them), the URL of a server's admin listener, or a data directory that no\n" +
			"server has open.\n\n" +
			"The source goes on serving while its likes are copied, and while what changed meanwhile is copied after them. At\n" +
			"the end it stands still: likes get 503, which clients repeat, and reads go on. Then both are compared like by\n" +
			"like. Once they are equal the command says so and waits, so that everything can be pointed at the target. Ctrl-C\n" +
			"ends it; whatever ends it, the source accepts likes again.\n\n" +
			"Nothing else may write to the target before that. The exit code is 0 when both were equal, 3 when they differ, and\n" +
			"1 after a failure: then the same command with --resume goes on.",
		Example: "  likewise move --from http://127.0.0.1:9090 --to postgres://likewise@db/likewise\n" +
			"  likewise move --from postgres://likewise@db/likewise --to ./likewise-data --verify changed",
		Args: needs(),
	}
	cmd.RunE = action(func(cmd *cobra.Command, _ []string) (err error) {
		cfg, err := load(cmd)
		if err != nil {
			return err
		}
		switch verify {
		case "all", "changed":
			how.VerifyAll = verify == "all"
		default:
			return &failure{fmt.Errorf("--verify must be all or changed, not %q", verify), exitUsage}
		}
		if from.Token, err = fromToken.given(); err != nil {
			return err
		}
		if to.Token, err = toToken.given(); err != nil {
			return err
		}
		how.Out, how.Terminal = cmd.ErrOrStderr(), observe.IsTerminal(os.Stderr)
		report, err := server.Move(cmd.Context(), cfg.Config, warnings(), how, from, to)
		return moved(cmd, how, report, err)
	})
	cmd.Flags().StringVar(&from.Address, "from", "", "where the likes are")
	cmd.Flags().StringVar(&to.Address, "to", "", "where they are to be; nothing may be there yet")
	cmd.Flags().BoolVar(&how.Resume, "resume", false, "go on with a move that was interrupted: likes that only the target has are removed")
	cmd.Flags().BoolVar(&how.Freeze, "freeze", true, "let the source stand still at the end; without it only what does not change is equal")
	cmd.Flags().StringVar(&verify, "verify", "all", "what is compared while the source stands still: all likes, or only what changed\n"+
		"since all were compared, so that it takes seconds however many likes there are")
	cmd.Flags().StringVar(&fromToken.tokenFile, "from-token-file", "", "file with a token for a source that is a server (default: LIKEWISE_TOKEN, or made with the key in --data-dir)")
	cmd.Flags().StringVar(&toToken.tokenFile, "to-token-file", "", "the same for a target that is a server")
	addSettings(cmd, "data-dir", "jwt-secret-file", "postgres-pgbouncer", "postgres-accept-unsafe")
	for _, name := range []string{"from", "to"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // the flag does not exist
		}
	}
	complete(cmd, "verify", "all", "changed")
	return cmd
}

// moved tells what a move came to.
func moved(cmd *cobra.Command, how move.Config, r move.Report, err error) error {
	switch {
	case errors.Is(err, move.ErrDiffers):
		return &failure{fmt.Errorf("%w. The source accepts likes again; keep to it", err), exitDrift}
	case errors.Is(err, move.ErrNotEmpty):
		return fmt.Errorf("%w. If they are of an earlier run of this move, add --resume: it makes the target equal to the source, "+
			"so that likes which only the target has are removed. Else choose an empty target", err)
	case err != nil && !errors.Is(err, like.ErrInvalid):
		return fmt.Errorf("%w\nThe source accepts likes again. Run the same command with --resume to go on", err)
	case err != nil:
		return err
	}
	end := "both held the same likes while the source stood still"
	if !how.Freeze {
		end = "the source goes on, so that what changes from now on is not in the target"
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d likes compared, %d copied, %d corrected afterwards; %s\n", r.Likes, r.Copied, r.Changed, end)
	return err
}
