package test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"github.com/jmoiron/sqlx"
	. "github.com/onsi/ginkgo/v2"
)

// breaks says where the connections of a database break. What they break with is
// errConnection.
type breaks struct {
	// afterRows is how many rows of an answer come, and 0 if all do.
	afterRows int
	// atCommit is where a transaction is taken back instead of committed.
	atCommit bool
}

// breaking returns a database with db's driver name that is db, but for its
// connections, which break. It is closed when the spec ends.
func breaking(db *sqlx.DB, b breaks) *sqlx.DB {
	GinkgoHelper()
	broken := sqlx.NewDb(sql.OpenDB(breakingConnector{db, b}), db.DriverName())
	DeferCleanup(broken.Close)
	return broken
}

// A breakingConnector takes its connections from db.
type breakingConnector struct {
	db *sqlx.DB
	breaks
}

func (c breakingConnector) Driver() driver.Driver { return c.db.Driver() }

func (c breakingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	taken, err := c.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	conn := breakingConn{breaks: c.breaks, giveBack: taken.Close}
	// While it is taken, nobody else uses the driver's connection.
	err = taken.Raw(func(raw any) error {
		conn.Conn = raw.(driver.Conn)
		return nil
	})
	return conn, err
}

// A breakingConn hides that the connection can do more than prepare and begin,
// which makes database/sql do everything with these two.
type breakingConn struct {
	driver.Conn
	breaks
	giveBack func() error
}

func (c breakingConn) Close() error { return c.giveBack() }

func (c breakingConn) Prepare(query string) (driver.Stmt, error) {
	stmt, err := c.Conn.Prepare(query)
	return breakingStmt{stmt, c.breaks}, err
}

func (c breakingConn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, options)
	return breakingTx{tx, c.breaks}, err
}

type breakingStmt struct {
	driver.Stmt
	breaks
}

func (s breakingStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
	return &breakingRows{Rows: rows, breaks: s.breaks}, err
}

type breakingRows struct {
	driver.Rows
	breaks
	read int
}

func (r *breakingRows) Next(row []driver.Value) error {
	if r.afterRows > 0 && r.read == r.afterRows {
		return errConnection
	}
	r.read++
	return r.Rows.Next(row)
}

type breakingTx struct {
	driver.Tx
	breaks
}

func (t breakingTx) Commit() error {
	if t.atCommit {
		return errors.Join(errConnection, t.Rollback())
	}
	return t.Tx.Commit()
}
