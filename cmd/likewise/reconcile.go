package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"likewise/internal/ledger"
	"likewise/internal/server"
	"likewise/internal/transfer"
)

func reconcileCommand() *cobra.Command {
	var dryRun, offline bool
	var item string
	cmd := &cobra.Command{
		Use:   "reconcile",
		Short: "Compare all totals with the facts, and correct them",
		Long: "Counts the likes of every item at one point of the history, compares them with the item's total and list, and\n" +
			"corrects what differs. The server goes on serving. A difference is a bug: it is printed, counted in the metrics,\n" +
			"and the exit code is 3.",
		Example: "  likewise reconcile --dry-run\n  likewise reconcile --item posts/42",
		Args:    needs(),
	}
	where := addAccess(cmd, "admin-url", "LIKEWISE_ADMIN_URL", "admin")
	cmd.RunE = action(func(cmd *cobra.Command, _ []string) error {
		out := cmd.OutOrStdout()
		found := func(a ledger.Audit) { printAudit(out, a) }
		audit := where.auditAll
		switch {
		case item != "":
			audit = where.auditOne(item)
		case offline:
			audit = auditOffline
		}
		sum, err := audit(cmd, !dryRun, found)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%d items audited, %d differed, %d corrected\n", sum.Items, sum.Drifted, sum.Repaired)
		if sum.Stopped != "" {
			fmt.Fprintln(out, sum.Stopped)
		}
		if sum.Drifted > 0 {
			return &failure{errors.New("drift found: totals or lists differed from the facts, which is a bug; please report it with the lines above"), exitDrift}
		}
		return nil
	})
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "correct nothing")
	cmd.Flags().StringVar(&item, "item", "", "audit only this item, written collection/id")
	cmd.Flags().BoolVar(&offline, "offline", false, "audit --data-dir, which no server has open")
	cmd.MarkFlagsMutuallyExclusive("item", "offline")
	return cmd
}

// audit is one way to find out what differs.
type audit = func(cmd *cobra.Command, repair bool, found func(ledger.Audit)) (transfer.Tally, error)

func (a *access) auditAll(cmd *cobra.Command, repair bool, found func(ledger.Audit)) (transfer.Tally, error) {
	at, err := a.operator(cmd)
	if err != nil {
		return transfer.Tally{}, err
	}
	return at.Reconcile(cmd.Context(), repair, found)
}

func (a *access) auditOne(name string) audit {
	return func(cmd *cobra.Command, repair bool, found func(ledger.Audit)) (transfer.Tally, error) {
		item, err := parseItem(name)
		if err != nil {
			return transfer.Tally{}, err
		}
		at, err := a.operator(cmd)
		if err != nil {
			return transfer.Tally{}, err
		}
		return at.ReconcileItem(cmd.Context(), item, repair, found)
	}
}

func auditOffline(cmd *cobra.Command, repair bool, found func(ledger.Audit)) (transfer.Tally, error) {
	cfg, err := load(cmd)
	if err != nil {
		return transfer.Tally{}, err
	}
	return server.ReconcileOffline(cmd.Context(), cfg.Config, warnings(), repair, found)
}

func printAudit(w io.Writer, a ledger.Audit) {
	fmt.Fprintf(w, "%s: total %d, facts %d, missing from the list %d, too many in the list %d", a.Item, a.Total, a.Facts, a.Unlisted, a.Phantom)
	if a.Repaired {
		fmt.Fprint(w, ", corrected")
	}
	fmt.Fprintln(w)
}
