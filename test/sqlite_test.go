package test

import (
	"path/filepath"

	"github.com/jmoiron/sqlx"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	_ "modernc.org/sqlite"
)

// openSQLite opens a new SQLite file, in the way in which the README tells hosts
// to open theirs. It is closed and removed when the spec ends.
func openSQLite() *sqlx.DB {
	GinkgoHelper()
	return openSQLiteFile(filepath.Join(GinkgoT().TempDir(), "spec.db"))
}

// openSQLiteFile opens a SQLite file, which it creates if need be. It is closed
// when the spec ends.
func openSQLiteFile(file string) *sqlx.DB {
	GinkgoHelper()
	db, err := sqlx.Open("sqlite", "file:"+file+"?_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(db.Close)
	return db
}
