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
	for _, check := range []func(context.Context, *sqlx.DB) (warnings []string, err error){checkSettings, checkIDs, checkIndex} {
		warnings, err := check(ctx, db)
		if err != nil {
			logger.LogAttrs(ctx, slog.LevelWarn, "the server cannot be checked", slog.String("error", err.Error()))
			return
		}
		for _, warning := range warnings {
			logger.LogAttrs(ctx, slog.LevelWarn, warning)
		}
	}
}

// checkSettings asks whether reads see what was written, and whether it is found.
func checkSettings(ctx context.Context, db *sqlx.DB) (warnings []string, err error) {
	var variables []struct {
		Name  string `db:"Variable_name"`
		Value string `db:"Value"`
	}
	const which = "SHOW VARIABLES WHERE Variable_name IN ('wsrep_on', 'wsrep_sync_wait', 'read_only', 'sql_mode', 'character_set_client')"
	if err := db.SelectContext(ctx, &variables, which); err != nil {
		return nil, fmt.Errorf("read the server's variables: %w", err)
	}
	value := make(map[string]string)
	for _, v := range variables {
		value[v.Name] = v.Value
	}
	// The first bit of it is what reads wait for.
	wait, _ := strconv.Atoi(value["wsrep_sync_wait"])
	if value["wsrep_on"] == "ON" && wait&1 == 0 {
		warnings = append(warnings, "this is a node of a Galera cluster, on which a message that another node has just stored may be missing: put wsrep_sync_wait=1 into the DSN")
	}
	if value["read_only"] != "" && value["read_only"] != "OFF" {
		warnings = append(warnings, "this server is read-only, as replicas are, on which a message that was just stored may be missing: use the server that is written")
	}
	if !strings.Contains(value["sql_mode"], "STRICT_") {
		warnings = append(warnings, "sql_mode is not strict, so what does not fit a column is cut off without an error, session ids too: put STRICT_TRANS_TABLES into it")
	}
	if strings.Contains(value["sql_mode"], "PAD_CHAR_TO_FULL_LENGTH") {
		warnings = append(warnings, "sql_mode has PAD_CHAR_TO_FULL_LENGTH, so session ids in a CHAR column are not found: take it out")
	}
	if value["character_set_client"] != "utf8mb4" {
		warnings = append(warnings, "the connection is not in utf8mb4, so session ids that are not ASCII may not be found: put charset=utf8mb4 into the DSN")
	}
	return warnings, nil
}

// checkIDs asks whether the server gives ids in order.
func checkIDs(ctx context.Context, db *sqlx.DB) ([]string, error) {
	var version string
	if err := db.GetContext(ctx, &version, "SELECT VERSION()"); err != nil {
		return nil, fmt.Errorf("read the server's version: %w", err)
	}
	if !strings.Contains(version, "TiDB") {
		return nil, nil
	}
	var name, definition string
	err := db.QueryRowContext(ctx, "SHOW CREATE TABLE `message`").Scan(&name, &definition)
	if err != nil {
		return nil, fmt.Errorf("read the definition of table message: %w", err)
	}
	if strings.Contains(definition, "AUTO_INCREMENT") && !autoIDCacheOne.MatchString(definition) {
		return []string{"TiDB gives the ids of table message out of order across its nodes: create it with AUTO_ID_CACHE 1"}, nil
	}
	return nil, nil
}

// checkIndex asks whether an index finds a session's messages. A primary key does
// not, because the statement of the first stamp tells the server to leave it aside.
func checkIndex(ctx context.Context, db *sqlx.DB) ([]string, error) {
	const where = "FROM information_schema.%s WHERE table_schema = DATABASE() AND table_name = 'message' AND column_name = 'session_id'"
	var unindexed int
	query := fmt.Sprintf("SELECT COUNT(*) "+where+" AND NOT EXISTS (SELECT 1 "+where+" AND seq_in_index = 1 AND index_name <> 'PRIMARY' AND index_type <> 'FULLTEXT')", "columns", "statistics")
	if err := db.GetContext(ctx, &unindexed, query); err != nil {
		return nil, fmt.Errorf("read the indexes of table message: %w", err)
	}
	if unindexed > 0 {
		return []string{"table message has no index that begins with session_id, or only its primary key does, so each prompt reads all of it: create one"}, nil
	}
	return nil, nil
}
