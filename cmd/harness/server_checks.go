package main

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"strings"

	"github.com/jmoiron/sqlx"
)

// autoIDCacheOne is in what TiDB prints of a table whose ids all come from one
// place, and so in order.
var autoIDCacheOne = regexp.MustCompile(`AUTO_ID_CACHE[ =]+1\b`)

// warnOfServer warns of what it finds about a server that makes dates wrong or
// slow, as docs/operations.md explains it: in one line each. A server that cannot
// be asked is a warning, too.
func warnOfServer(ctx context.Context, db *sqlx.DB, logger *slog.Logger) {
	for _, check := range []func(context.Context, *sqlx.DB) (warning string, err error){checkReads, checkIDs, checkIndex} {
		warning, err := check(ctx, db)
		if err != nil {
			logger.LogAttrs(ctx, slog.LevelWarn, "the server cannot be checked", slog.String("error", err.Error()))
			return
		}
		if warning != "" {
			logger.LogAttrs(ctx, slog.LevelWarn, warning)
		}
	}
}

// checkReads asks whether reads see what was written.
func checkReads(ctx context.Context, db *sqlx.DB) (string, error) {
	var variables []struct {
		Name  string `db:"Variable_name"`
		Value string `db:"Value"`
	}
	const which = "SHOW VARIABLES WHERE Variable_name IN ('wsrep_on', 'wsrep_sync_wait', 'read_only')"
	if err := db.SelectContext(ctx, &variables, which); err != nil {
		return "", fmt.Errorf("read the server's variables: %w", err)
	}
	value := make(map[string]string)
	for _, v := range variables {
		value[v.Name] = v.Value
	}
	// The first bit of it is what reads wait for.
	wait, _ := strconv.Atoi(value["wsrep_sync_wait"])
	switch {
	case value["wsrep_on"] == "ON" && wait&1 == 0:
		return "this is a node of a Galera cluster, on which a message that another node has just stored may be missing: put wsrep_sync_wait=1 into the DSN", nil
	case value["read_only"] != "" && value["read_only"] != "OFF":
		return "this server is read-only, as replicas are, on which a message that was just stored may be missing: use the server that is written", nil
	}
	return "", nil
}

// checkIDs asks whether the server gives ids in order.
func checkIDs(ctx context.Context, db *sqlx.DB) (string, error) {
	var version string
	if err := db.GetContext(ctx, &version, "SELECT VERSION()"); err != nil {
		return "", fmt.Errorf("read the server's version: %w", err)
	}
	if !strings.Contains(version, "TiDB") {
		return "", nil
	}
	var name, definition string
	err := db.QueryRowContext(ctx, "SHOW CREATE TABLE `message`").Scan(&name, &definition)
	if err != nil {
		return "", fmt.Errorf("read the definition of table message: %w", err)
	}
	if strings.Contains(definition, "AUTO_INCREMENT") && !autoIDCacheOne.MatchString(definition) {
		return "TiDB gives the ids of table message out of order across its nodes: create it with AUTO_ID_CACHE 1", nil
	}
	return "", nil
}

// checkIndex asks whether an index finds a session's messages. A primary key does
// not, because the statement of the first stamp tells the server to leave it aside.
func checkIndex(ctx context.Context, db *sqlx.DB) (string, error) {
	const where = "FROM information_schema.%s WHERE table_schema = DATABASE() AND table_name = 'message' AND column_name = 'session_id'"
	var unindexed int
	query := fmt.Sprintf("SELECT COUNT(*) "+where+" AND NOT EXISTS (SELECT 1 "+where+" AND seq_in_index = 1 AND index_name <> 'PRIMARY' AND index_type <> 'FULLTEXT')", "columns", "statistics")
	if err := db.GetContext(ctx, &unindexed, query); err != nil {
		return "", fmt.Errorf("read the indexes of table message: %w", err)
	}
	if unindexed > 0 {
		return "table message has no index that begins with session_id, or only its primary key does, so each prompt reads all of it: create one", nil
	}
	return "", nil
}
