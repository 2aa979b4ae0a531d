-- The sessions of the reference harness. Times are the writer's wall clock, as
-- text. An id is never used twice.
CREATE TABLE IF NOT EXISTS message (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id   TEXT    NOT NULL,
    role         TEXT    NOT NULL,            -- USER, ASSISTANT or TOOL
    content      TEXT    NOT NULL,            -- content that is a string
    parts        TEXT,                        -- content that is parts, as JSON; else NULL
    tool_calls   TEXT,                        -- an assistant's calls, as JSON
    tool_call_id TEXT,                        -- the call that a tool's message answers
    tool_failed  INTEGER NOT NULL DEFAULT 0,
    created_at   TEXT,                        -- 2026-10-12 23:50:00
    deleted      INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS message_session ON message (session_id, role, deleted, id);

-- How far sessions are compacted. The newest row of a session holds.
CREATE TABLE IF NOT EXISTS compaction (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT    NOT NULL,
    through_id INTEGER NOT NULL,              -- the last message that was compacted
    handoff    TEXT    NOT NULL
);
CREATE INDEX IF NOT EXISTS compaction_session ON compaction (session_id, id);

-- The calls to models. A count that the provider left out is NULL.
CREATE TABLE IF NOT EXISTS model_call (
    id                 INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id         TEXT    NOT NULL,
    at                 TEXT    NOT NULL,      -- 2026-10-12 23:50:00
    purpose            TEXT    NOT NULL,      -- turn or compaction
    last_message_id    TEXT    NOT NULL,
    provider           TEXT    NOT NULL,
    model              TEXT    NOT NULL,
    reply_id           TEXT    NOT NULL,
    failed             INTEGER NOT NULL,
    units              INTEGER NOT NULL,      -- prefix units of the prompt
    previous_units     INTEGER NOT NULL,      -- of the session's previous prompt
    repeated_units     INTEGER NOT NULL,      -- how many of those are repeated
    changed_sections   TEXT    NOT NULL,      -- names, as a JSON list
    changed_tools      TEXT    NOT NULL,      -- names, as a JSON list
    input_tokens       INTEGER,
    output_tokens      INTEGER,
    cache_read_tokens  INTEGER,
    cache_write_tokens INTEGER,
    cache_miss         TEXT    NOT NULL,      -- the provider's own reason
    fingerprint        TEXT                   -- of a session's newest answered call, as JSON
);
CREATE INDEX IF NOT EXISTS model_call_session ON model_call (session_id, id);
