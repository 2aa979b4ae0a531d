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
