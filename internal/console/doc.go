// Package console gathers what the operator's page shows: the figures of the
// process, which are those of its metrics, the hot items, the last audits, and what
// the ledger knows of one item or user.
//
// It reads only, and only when somebody looks. The page and this package agree on
// web/src/console/stats.ts.
package console
