-- The sessions of the reference harness, on MySQL, MariaDB or TiDB. Times are
-- the writer's wall clock, to the second. On TiDB add AUTO_ID_CACHE 1 behind the
-- table's last parenthesis, so that ids are in order.
CREATE TABLE message (
    id           BIGINT       NOT NULL AUTO_INCREMENT PRIMARY KEY,
    session_id   VARCHAR(64)  NOT NULL,
    role         VARCHAR(16)  NOT NULL,            -- USER, ASSISTANT or TOOL
    content      LONGTEXT     NOT NULL,            -- content that is a string
    parts        LONGTEXT,                         -- content that is parts, as JSON; else NULL
    tool_calls   LONGTEXT,                         -- an assistant's calls, as JSON
    tool_call_id VARCHAR(255),                     -- the call that a tool's message answers
    tool_failed  TINYINT      NOT NULL DEFAULT 0,
    created_at   DATETIME,                         -- 2026-10-12 23:50:00
    deleted      TINYINT      NOT NULL DEFAULT 0,
    KEY message_session (session_id, role, deleted, id)
) DEFAULT CHARSET = utf8mb4;
