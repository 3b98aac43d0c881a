CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Requests that wait. `request` holds tool input, so the row goes when it is settled.
CREATE TABLE pending (
    id         TEXT PRIMARY KEY,
    token_hash BLOB,
    tool       TEXT NOT NULL,
    project    TEXT NOT NULL,
    machine    TEXT NOT NULL,
    session    TEXT,
    digest     TEXT NOT NULL,
    message_id TEXT,
    chat_id    TEXT,
    asked_at   INTEGER NOT NULL,
    deadline   INTEGER NOT NULL,
    request    TEXT NOT NULL
) STRICT;

-- How requests ended, for late clicks. No tool input.
CREATE TABLE settled (
    id         TEXT PRIMARY KEY,
    kind       TEXT NOT NULL,
    ending     TEXT NOT NULL,
    tool       TEXT NOT NULL,
    project    TEXT NOT NULL,
    machine    TEXT NOT NULL,
    session    TEXT,
    digest     TEXT NOT NULL,
    message_id TEXT,
    chat_id    TEXT,
    token_hash BLOB,
    asked_at   INTEGER NOT NULL,
    settled_at INTEGER NOT NULL,
    undone_at  INTEGER
) STRICT;
CREATE INDEX settled_by_time    ON settled (settled_at);
CREATE INDEX settled_by_message ON settled (message_id);
CREATE INDEX settled_by_digest  ON settled (digest, kind);

CREATE TABLE seen (
    event_id TEXT PRIMARY KEY,
    at       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX seen_by_time ON seen (at);

CREATE TABLE answers (
    event_id TEXT PRIMARY KEY,
    at       INTEGER NOT NULL,
    reply    BLOB NOT NULL
) STRICT;
CREATE INDEX answers_by_time ON answers (at);

-- `version` never repeats, so that a late "done" can't remove a newer card.
CREATE TABLE outbox (
    version    INTEGER PRIMARY KEY AUTOINCREMENT,
    message_id TEXT NOT NULL UNIQUE,
    card       TEXT NOT NULL,
    at         INTEGER NOT NULL
) STRICT;

CREATE TABLE left_rules (
    number     INTEGER PRIMARY KEY AUTOINCREMENT,
    request_id TEXT NOT NULL,
    project    TEXT NOT NULL,
    file       TEXT NOT NULL,
    rule       TEXT NOT NULL,
    operator   TEXT NOT NULL,
    at         INTEGER NOT NULL,
    undone_at  INTEGER
) STRICT;
CREATE INDEX left_rules_by_request ON left_rules (request_id);

CREATE TABLE audit (
    seq        INTEGER PRIMARY KEY,
    at         INTEGER NOT NULL,
    kind       TEXT NOT NULL,
    operator   TEXT,
    event_id   TEXT,
    request_id TEXT,
    session    TEXT,
    tool       TEXT,
    digest     TEXT,
    decision   TEXT,
    rule       TEXT,
    source     TEXT,
    detail     TEXT,
    prev       BLOB NOT NULL,
    hash       BLOB NOT NULL
) STRICT;

-- The last row that was pruned: the chain hangs from it.
CREATE TABLE audit_anchor (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    seq  INTEGER NOT NULL,
    hash BLOB NOT NULL
) STRICT;
INSERT INTO audit_anchor (only, seq, hash) VALUES (1, 0, zeroblob(32));

CREATE TRIGGER audit_is_never_changed BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit is append-only');
END;
CREATE TRIGGER audit_is_never_cut BEFORE DELETE ON audit
WHEN OLD.seq > (SELECT seq FROM audit_anchor)
BEGIN
    SELECT RAISE(ABORT, 'the audit is append-only');
END;
