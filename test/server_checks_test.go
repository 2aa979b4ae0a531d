package test

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sessiondate/adapters/sqlhistory"
	"sessiondate/domain"
)

// warningsOf are the warnings of the harness, which prints the prompt of a
// session all the same.
func warningsOf(ctx context.Context, dsn string) (warnings []string) {
	GinkgoHelper()
	run := runHarness(ctx, "prompt", "--dsn", dsn, "--session", session)
	Expect(run.code).To(BeZero(), run.stderr)
	Expect(run.stdout).To(ContainSubstring("2026-10-12"))
	for line := range strings.Lines(run.stderr) {
		Expect(line).To(ContainSubstring("level=WARN"))
		warnings = append(warnings, line)
	}
	return warnings
}

var _ = Describe("The harness's look at a server", Label("mariadb", "harness"), func() {
	greeting := func() domain.Message { return user("", "2026-10-12 23:50:00", "Hello.") }

	It("finds nothing to say of a server that is as it should be, also with the least rights", func(ctx SpecContext) {
		name := newMariaDB(ctx)
		createStore(ctx, name, sqlhistory.SchemaMySQL)
		db := openMariaDB(name, "")
		Expect(sqlhistory.New(db).Append(ctx, session, greeting())).To(Succeed())
		Expect(warningsOf(ctx, "root@unix("+mariaDBSocket+")/"+name)).To(BeEmpty())

		reader := "looker_" + name
		for _, statement := range []string{
			"CREATE USER '" + reader + "'@'localhost'",
			"GRANT SELECT ON message TO '" + reader + "'@'localhost'",
			"GRANT SELECT ON compaction TO '" + reader + "'@'localhost'",
		} {
			_, err := db.ExecContext(ctx, statement)
			Expect(err).NotTo(HaveOccurred(), statement)
		}
		DeferCleanup(func(ctx SpecContext) {
			root := connectMariaDB(mariaDBSocket, "", "")
			defer root.Close()
			_, err := root.ExecContext(ctx, "DROP USER '"+reader+"'@'localhost'")
			Expect(err).NotTo(HaveOccurred())
		})
		Expect(warningsOf(ctx, reader+"@unix("+mariaDBSocket+")/"+name)).To(BeEmpty())
	})

	DescribeTable("warns where no index begins with session_id", func(ctx SpecContext, index string) {
		name := newMariaDB(ctx)
		createStore(ctx, name, sqlhistory.SchemaMySQL+"DROP INDEX message_session ON message;"+index)
		Expect(sqlhistory.New(openMariaDB(name, "")).Append(ctx, session, greeting())).To(Succeed())
		Expect(warningsOf(ctx, "root@unix("+mariaDBSocket+")/"+name)).To(ConsistOf(ContainSubstring("no index that begins with session_id")))
	},
		Entry("because there is none", ""),
		Entry("but the primary key, which the first stamp's statement leaves aside",
			"ALTER TABLE message ADD KEY (id), DROP PRIMARY KEY, ADD PRIMARY KEY (session_id, id)"),
		Entry("but one for searching words", "CREATE FULLTEXT INDEX words ON message (session_id)"),
		Entry("because another column comes first", "CREATE INDEX message_role ON message (role, session_id)"),
	)

	It("is silent where a composite index begins with session_id", func(ctx SpecContext) {
		name := newMariaDB(ctx)
		createStore(ctx, name, sqlhistory.SchemaMySQL+"DROP INDEX message_session ON message; CREATE INDEX other ON message (session_id, created_at)")
		Expect(sqlhistory.New(openMariaDB(name, "")).Append(ctx, session, greeting())).To(Succeed())
		Expect(warningsOf(ctx, "root@unix("+mariaDBSocket+")/"+name)).To(BeEmpty())
	})

	DescribeTable("warns of a connection on which ids are cut off or not found", func(ctx SpecContext, parameters string, warnings ...any) {
		name := newMariaDB(ctx)
		createStore(ctx, name, sqlhistory.SchemaMySQL)
		Expect(sqlhistory.New(openMariaDB(name, "")).Append(ctx, session, greeting())).To(Succeed())
		Expect(warningsOf(ctx, "root@unix("+mariaDBSocket+")/"+name+"?"+parameters)).To(ConsistOf(warnings...))
	},
		Entry("because sql_mode is not strict", "sql_mode=%27NO_ZERO_DATE%27", ContainSubstring("sql_mode is not strict")),
		Entry("but not of one that is strict for tables that have transactions", "sql_mode=%27STRICT_TRANS_TABLES%27"),
		Entry("nor of one that is strict for all", "sql_mode=%27ANSI,STRICT_ALL_TABLES%27"),
		Entry("because CHAR columns are padded", "sql_mode=%27STRICT_TRANS_TABLES,PAD_CHAR_TO_FULL_LENGTH%27", ContainSubstring("PAD_CHAR_TO_FULL_LENGTH")),
		Entry("because it is in latin1", "charset=latin1", ContainSubstring("put charset=utf8mb4 into the DSN")),
		Entry("because it is in an older UTF-8 that has no emoji", "charset=utf8mb3", ContainSubstring("put charset=utf8mb4 into the DSN")),
	)

	It("leaves a missing table to the command, which names it in one line", func(ctx SpecContext) {
		expectRefusal(runHarness(ctx, "prompt", "--dsn", "root@unix("+mariaDBSocket+")/"+newMariaDB(ctx), "--session", session), 1, "doesn't exist")
	})

	It("warns of a server that is read-only, and of one that is TiDB and gives ids out of order", func(ctx SpecContext) {
		if mariaDBSocket == "" {
			Skip("MariaDB is not installed")
		}
		server := installMariaDB(ctx)
		// A server that says it is another one. No TiDB is at hand.
		server.start(ctx, "--version=8.0.11-TiDB-v8.5.4")
		root := connectMariaDB(server.socket, "", "multiStatements=true")
		defer root.Close()
		execute := func(statement string) {
			GinkgoHelper()
			_, err := root.ExecContext(ctx, statement)
			Expect(err).NotTo(HaveOccurred(), statement)
		}
		execute("CREATE DATABASE checks DEFAULT CHARACTER SET utf8mb4; USE checks; " + sqlhistory.SchemaMySQL)
		dsn := "root@unix(" + server.socket + ")/checks"
		db := connectMariaDB(server.socket, "checks", "")
		defer db.Close()
		Expect(sqlhistory.New(db).Append(ctx, session, greeting())).To(Succeed())

		outOfOrder := ContainSubstring("create it with AUTO_ID_CACHE 1")
		Expect(warningsOf(ctx, dsn)).To(ConsistOf(outOfOrder))
		// As TiDB's SHOW CREATE TABLE prints it, behind the table's options.
		for definition, expected := range map[string][]any{
			"/*T![auto_id_cache] AUTO_ID_CACHE=1 */":   {},
			"/*T![auto_id_cache] AUTO_ID_CACHE=100 */": {outOfOrder},
		} {
			execute("ALTER TABLE checks.message COMMENT '" + definition + "'")
			Expect(warningsOf(ctx, dsn)).To(ConsistOf(expected...), definition)
		}
		execute("SET GLOBAL read_only = ON")
		Expect(warningsOf(ctx, dsn)).To(ConsistOf(ContainSubstring("read-only"), outOfOrder))
	}, NodeTimeout(time.Minute))
})
