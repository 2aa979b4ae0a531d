package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
	"github.com/spf13/cobra"
	_ "modernc.org/sqlite" // The driver of the embedded store.

	"sessiondate/adapters/sqlhistory"
)

// storeFlags are the flags that name a store.
type storeFlags struct {
	db, dsn string
}

func (f *storeFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.db, "db", "", "`file` of the embedded store")
	cmd.Flags().StringVar(&f.dsn, "dsn", "", "data source `name` of a MySQL server: user:password@tcp(host)/database")
}

// open opens the store that the flags name. The logger is told what is doubtful
// about a server.
func (f storeFlags) open(ctx context.Context, logger *slog.Logger) (*sqlx.DB, error) {
	return f.openWith(ctx, logger, openStore)
}

// openOrCreate does what open does, and creates the store if it is an embedded
// one.
func (f storeFlags) openOrCreate(ctx context.Context, logger *slog.Logger) (*sqlx.DB, error) {
	return f.openWith(ctx, logger, createStore)
}

func (f storeFlags) openWith(ctx context.Context, logger *slog.Logger, embedded func(context.Context, string) (*sqlx.DB, error)) (*sqlx.DB, error) {
	switch {
	case f.db != "" && f.dsn != "":
		return nil, usageError{errors.New("--db and --dsn are two stores; name one")}
	case f.db != "":
		return embedded(ctx, f.db)
	case f.dsn != "":
		db, err := openServer(ctx, f.dsn)
		if err != nil {
			return nil, err
		}
		warnOfServer(ctx, db, logger)
		return db, nil
	}
	return nil, usageError{errors.New("which store? Name a --db or a --dsn")}
}

// createStore opens the embedded store in a file and creates it if need be.
func createStore(ctx context.Context, file string) (*sqlx.DB, error) {
	db, err := openSQLite(ctx, file, "rwc")
	if err != nil {
		return nil, err
	}
	if _, err := db.ExecContext(ctx, sqlhistory.SchemaSQLite); err != nil {
		return nil, errors.Join(fmt.Errorf("create store %s: %w", file, err), db.Close())
	}
	return db, nil
}

// openStore opens the embedded store in a file, which must be there.
func openStore(ctx context.Context, file string) (*sqlx.DB, error) {
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no store %s; harness import makes one", file)
	}
	return openSQLite(ctx, file, "rw")
}

func openSQLite(ctx context.Context, file, mode string) (*sqlx.DB, error) {
	path, err := filepath.Abs(file)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", file, err)
	}
	dsn := url.URL{
		Scheme: "file",
		Path:   path,
		// Writers wait for one another, and do not fail half way as they would if
		// a transaction began as a reader's.
		RawQuery: "mode=" + mode + "&_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)",
	}
	db, err := sqlx.ConnectContext(ctx, "sqlite", dsn.String())
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", file, err)
	}
	return db, nil
}

// openServer opens the store on a server that speaks MySQL's protocol.
func openServer(ctx context.Context, dsn string) (*sqlx.DB, error) {
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, usageError{fmt.Errorf("--dsn: %w", err)}
	}
	// What the driver would print is in its errors, too.
	config.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, usageError{fmt.Errorf("--dsn: %w", err)}
	}
	db := sqlx.NewDb(sql.OpenDB(connector), "mysql")
	if err := db.PingContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open store on %s: %w", config.Addr, err), db.Close())
	}
	return db, nil
}
