package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// warned is what a connection keeps of the last warning of its server.
const warned = "warning"

// heed keeps warnings: a wait for replicas that somebody cancels ends with one, and the
// COMMIT then succeeds all the same.
func heed(conn *pgconn.PgConn, notice *pgconn.Notice) {
	if notice.SeverityUnlocalized == "WARNING" {
		conn.CustomData()[warned] = notice.Message
	}
}

// commit runs a statement that commits. It fails also when the transaction was rolled
// back, and when the server warns: then the commit may be on this server only.
func commit(ctx context.Context, conn *pgxpool.Conn, sql string) error {
	known := conn.Conn().PgConn().CustomData()
	delete(known, warned)
	tag, err := conn.Exec(ctx, sql)
	switch warning, warns := known[warned]; {
	case err != nil:
		return err
	case warns:
		return fmt.Errorf("the server warns: %v", warning)
	case tag.String() == "ROLLBACK":
		return errRolledBack
	}
	return nil
}
