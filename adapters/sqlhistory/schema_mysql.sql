-- The sessions of the reference harness, on MySQL, MariaDB or TiDB. Times are
-- the writer's wall clock, to the second. On TiDB add AUTO_ID_CACHE 1 behind each
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

-- How far sessions are compacted. The newest row of a session holds.
CREATE TABLE compaction (
    id         BIGINT      NOT NULL AUTO_INCREMENT PRIMARY KEY,
    session_id VARCHAR(64) NOT NULL,
    through_id BIGINT      NOT NULL,               -- the last message that was compacted
    handoff    LONGTEXT    NOT NULL,
    KEY compaction_session (session_id, id)
) DEFAULT CHARSET = utf8mb4;

-- The calls to models. A count that the provider left out is NULL.
CREATE TABLE model_call (
    id                 BIGINT       NOT NULL AUTO_INCREMENT PRIMARY KEY,
    session_id         VARCHAR(64)  NOT NULL,
    at                 DATETIME     NOT NULL,
    purpose            VARCHAR(16)  NOT NULL,      -- turn or compaction
    last_message_id    VARCHAR(64)  NOT NULL,
    provider           VARCHAR(64)  NOT NULL,
    model              VARCHAR(255) NOT NULL,
    reply_id           VARCHAR(255) NOT NULL,
    failed             TINYINT      NOT NULL,
    units              INT          NOT NULL,      -- prefix units of the prompt
    previous_units     INT          NOT NULL,      -- of the session's previous prompt
    repeated_units     INT          NOT NULL,      -- how many of those are repeated
    changed_sections   TEXT         NOT NULL,      -- names, as a JSON list
    changed_tools      TEXT         NOT NULL,      -- names, as a JSON list
    input_tokens       BIGINT,
    output_tokens      BIGINT,
    cache_read_tokens  BIGINT,
    cache_write_tokens BIGINT,
    cache_miss         VARCHAR(255) NOT NULL,      -- the provider's own reason
    fingerprint        LONGTEXT,                   -- of a session's newest answered call, as JSON
    KEY model_call_session (session_id, id)
) DEFAULT CHARSET = utf8mb4;
