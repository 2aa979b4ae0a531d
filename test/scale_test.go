//go:build scale

package test

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/schollz/progressbar/v3"

	"sessiondate/adapters/sqlhistory"
	"sessiondate/adapters/sqlstamp"
)

// make scale measures the two statements on a large table, against SELECT 1 on
// the same connection, in turns. It prints tables in Markdown; nothing depends on
// a time.

var (
	scaleRows     = flag.Int("rows", 3_000_000, "how many rows the message table has")
	scaleSessions = flag.Int("sessions", 20_000, "how many ordinary sessions it has")
)

const (
	scaleSamples = 1000
	// scaleBudget ends the samples of a statement that takes long, but for the
	// fewest.
	scaleBudget = 3 * time.Second
	scaleFewest = 3
)

// unhinted is the first statement as it would be without its hint.
const unhinted = "SELECT id FROM `message` WHERE session_id = ? AND role = 'USER' AND deleted = 0 ORDER BY id ASC LIMIT 1"

// An interruptible test has a context that ends when the run is interrupted, so
// that it fails, and stops its server and removes its folder.
type interruptible struct {
	*testing.T
	ctx context.Context
}

// Context returns that context.
func (i interruptible) Context() context.Context { return i.ctx }

func TestScale(t *testing.T) {
	ctx, stopped := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stopped()
	table := messageTable{*scaleRows, *scaleSessions}
	if table.rows < 30_000 || table.sessions < 1 || table.rows < 10*table.sessions {
		t.Fatalf("-rows %d -sessions %d: there must be 30000 rows or more, and 10 for each session", table.rows, table.sessions)
	}
	t.Run("MariaDB", func(inner *testing.T) {
		t := interruptible{inner, ctx}
		if err := findMariaDB(t.Context()); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		server := &mariaDBServer{socket: filepath.Join(dir, "s"), data: filepath.Join(dir, "data")}
		// All of the table fits into the memory: it is warm.
		if err := errors.Join(server.install(t.Context()), server.run(t.Context(), "--innodb-buffer-pool-size=4G")); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := stop(server.process); err != nil {
				t.Error(err)
			}
		})
		db := scaleOpen(t, "mysql", "root@unix("+server.socket+")/?multiStatements=true&interpolateParams=true")
		for _, statement := range []string{"CREATE DATABASE scale", "USE scale", sqlhistory.SchemaMySQL} {
			scaleExec(t, db, statement)
		}
		scaleMeasure(t, table, db, "DROP INDEX message_session ON message", "ANALYZE TABLE message")
	})
	t.Run("SQLite", func(inner *testing.T) {
		t := interruptible{inner, ctx}
		db := scaleOpen(t, "sqlite", "file:"+filepath.Join(t.TempDir(), "scale.db")+"?_txlock=immediate&_pragma=journal_mode(WAL)")
		scaleExec(t, db, sqlhistory.SchemaSQLite)
		scaleMeasure(t, table, db, "DROP INDEX message_session", "ANALYZE message")
	})
}

// scaleOpen opens a database on one connection, so that the server counts what is
// read on it.
func scaleOpen(t interruptible, driver, dsn string) *sqlx.DB {
	db, err := sqlx.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func scaleExec(t interruptible, db *sqlx.DB, statement string) {
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// scaleMeasure fills the table and measures the statements under each index.
func scaleMeasure(t interruptible, table messageTable, db *sqlx.DB, dropIndex, analyze string) {
	scaleExec(t, db, dropIndex)
	bar := progressbar.NewOptions(table.rows,
		progressbar.OptionSetDescription(t.Name()+", rows"), progressbar.OptionSetWriter(os.Stderr), progressbar.OptionShowCount(),
		progressbar.OptionThrottle(time.Second), progressbar.OptionOnCompletion(func() { fmt.Fprintln(os.Stderr) }))
	if err := table.fill(t.Context(), db, bar.Add); err != nil {
		t.Fatal(err)
	}
	reader := sqlstamp.New(db)
	first := func(ctx context.Context, session, _ string) error {
		_, err := reader.FirstUserStamp(ctx, session)
		return err
	}
	previous := func(ctx context.Context, session, before string) error {
		_, err := reader.PreviousUserStamp(ctx, session, before)
		return err
	}
	plain := func(ctx context.Context, session, _ string) error {
		var id int
		return db.GetContext(ctx, &id, unhinted, session)
	}
	type session struct{ name, kind, before string }
	sessions := []session{
		{"7", "ordinary", ""},
		{hugeEarly, "huge, early in the table", ""},
		{hugeSpread, "huge, all over the table", ""},
		{hugeLate, "huge, late in the table", ""},
	}
	for i := range sessions {
		// From one user message back to the one before it: as far as it can be.
		last, _ := table.lastUserRows(sessions[i].name)
		sessions[i].before = strconv.Itoa(last)
	}
	// It walks back over the whole session.
	silent := session{hugeSilent, "huge, one user message", strconv.Itoa(table.rows + 1)}

	var out strings.Builder
	fmt.Fprintf(&out, "\n**%s, %d rows, %d ordinary sessions.**\n\n", strings.TrimPrefix(t.Name(), "TestScale/"), table.rows, table.sessions)
	out.WriteString("| index | statement | session | p50 | of `SELECT 1` | p99 | of `SELECT 1` | samples |")
	if countsRows(db) {
		out.WriteString(" rows read |\n|---|---|---|---:|---:|---:|---:|---:|---:|\n")
	} else {
		out.WriteString("\n|---|---|---|---:|---:|---:|---:|---:|\n")
	}
	for _, columns := range []string{"session_id", "session_id, created_at", "session_id, role, deleted, id"} {
		fmt.Fprintf(os.Stderr, "%s, index (%s)\n", t.Name(), columns)
		scaleExec(t, db, "CREATE INDEX message_session ON message ("+columns+")")
		scaleExec(t, db, analyze)
		row := func(name string, s session, do func(context.Context, string, string) error) {
			result := scaleSample(t, db, func() error { return do(t.Context(), s.name, s.before) })
			fmt.Fprintf(&out, "| `(%s)` | %s | %s%s |\n", columns, name, s.kind, result)
		}
		for _, s := range sessions {
			row("first", s, first)
		}
		for _, s := range append(sessions, silent) {
			row("previous", s, previous)
		}
		if countsRows(db) {
			row("first, without its hint", sessions[3], plain)
		}
		scaleExec(t, db, dropIndex)
	}
	fmt.Println(out.String())
}

// scaleSample measures a statement against SELECT 1 and returns the cells of its
// row.
func scaleSample(t interruptible, db *sqlx.DB, do func() error) string {
	must := func(do func() error) time.Duration {
		start := time.Now()
		if err := do(); err != nil {
			t.Fatal(err)
		}
		return time.Since(start)
	}
	nothing := func() error {
		var one int
		return db.GetContext(t.Context(), &one, "SELECT 1")
	}
	must(do)
	var ours, bound []time.Duration
	for began := time.Now(); len(ours) < scaleFewest || len(ours) < scaleSamples && time.Since(began) < scaleBudget; {
		ours, bound = append(ours, must(do)), append(bound, must(nothing))
	}
	cells := ""
	for _, percent := range []int{50, 99} {
		a, b := percentile(ours, percent), percentile(bound, percent)
		cells += fmt.Sprintf(" | %s | %s", spellTime(float64(a)), spellRatio(a.Seconds()/b.Seconds()))
	}
	cells += fmt.Sprintf(" | %d", len(ours))
	if countsRows(db) {
		cells += fmt.Sprintf(" | %d", scaleRowsRead(t, db, func() { must(do) }))
	}
	return cells
}

func percentile(times []time.Duration, percent int) time.Duration {
	slices.Sort(times)
	return times[min(len(times)*percent/100, len(times)-1)]
}

// countsRows reports whether a connection counts the rows that it had the server
// read. It is MySQL's family as well in which the hint is needed.
func countsRows(db *sqlx.DB) bool { return db.DriverName() == "mysql" }

// scaleRowsRead returns how many rows do had the server read.
func scaleRowsRead(t interruptible, db *sqlx.DB, do func()) int {
	count := func() (sum int) {
		var status []struct {
			Name  string          `db:"Variable_name"`
			Value sql.Null[int64] `db:"Value"`
		}
		if err := db.SelectContext(t.Context(), &status, "SHOW SESSION STATUS LIKE 'Handler_read%'"); err != nil {
			t.Fatal(err)
		}
		for _, s := range status {
			sum += int(s.Value.V)
		}
		return sum
	}
	// Asking for the numbers reads some.
	before := count()
	asking := count() - before
	before = count()
	do()
	return count() - before - asking
}
