package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"likewise/internal/server"
	"likewise/internal/transfer"
)

func exportCommand() *cobra.Command {
	var offline bool
	cmd := &cobra.Command{
		Use:   "export FILE|FILE.gz|-",
		Short: "Export all likes as JSON lines",
		Long: "Writes every like as one line, in the form that import reads. The file gets its name when it is complete and on\n" +
			"disk; until then a file of that name stays as it was.",
		Example: "  likewise export likes.ndjson.gz\n  likewise export - | wc -l",
		Args:    needs("FILE"),
	}
	where := addAccess(cmd, "admin-url", "LIKEWISE_ADMIN_URL", "admin")
	cmd.RunE = action(func(cmd *cobra.Command, args []string) (err error) {
		open := where.openExport
		if offline {
			open = openOfflineExport
		}
		lines, err := open(cmd)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, lines.Close()) }()
		n, err := transfer.Export(lines, args[0], cmd.OutOrStdout())
		if err == nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "%d likes exported\n", n)
		}
		return err
	})
	cmd.Flags().BoolVar(&offline, "offline", false, "read --data-dir, which no server has open")
	return cmd
}

func (a *access) openExport(cmd *cobra.Command) (io.ReadCloser, error) {
	from, err := a.operator(cmd)
	if err != nil {
		return nil, err
	}
	return from.Export(cmd.Context())
}

func openOfflineExport(cmd *cobra.Command) (io.ReadCloser, error) {
	cfg, err := load(cmd)
	if err != nil {
		return nil, err
	}
	ledger, err := server.OpenLedger(cmd.Context(), cfg.Config, warnings())
	if err != nil {
		return nil, err
	}
	lines := transfer.Lines(ledger.Export(cmd.Context()))
	return readCloser{lines, func() error { return errors.Join(lines.Close(), ledger.Close()) }}, nil
}

type readCloser struct {
	io.Reader
	close func() error
}

// Close calls close.
func (r readCloser) Close() error { return r.close() }
