-- Cards that ask for nothing, and whose session each speaks of: a reply to one is for that session.
CREATE TABLE notices (
    message_id TEXT PRIMARY KEY,
    session    TEXT NOT NULL,
    project    TEXT NOT NULL,
    at         INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX notices_by_time ON notices (at);
