-- Chat messages that were acknowledged and have not had their effect yet, as Feishu pushed them.
-- A row goes with its effect.
CREATE TABLE inbox (
    message_id TEXT PRIMARY KEY NOT NULL,
    event_id   TEXT UNIQUE,
    push       BLOB NOT NULL,
    begun      INTEGER NOT NULL,
    at         INTEGER NOT NULL
) STRICT;
