-- Sessions started from a chat: where each lives and what resumes it. No words of anybody's
-- but a short title.
CREATE TABLE sessions (
    number       INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation TEXT NOT NULL,
    begun        INTEGER NOT NULL,
    mode         TEXT NOT NULL,
    running      INTEGER NOT NULL,
    asks         TEXT NOT NULL,
    project      TEXT NOT NULL,
    title        TEXT NOT NULL,
    chat_id      TEXT NOT NULL,
    thread       TEXT,
    anchor       TEXT NOT NULL,
    card         TEXT,
    began_at     INTEGER NOT NULL,
    used_at      INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_by_use ON sessions (used_at);
