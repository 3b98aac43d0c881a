-- What lets this machine of a team touch a message, by the message.
CREATE TABLE tickets (
    message_id TEXT PRIMARY KEY,
    ticket     TEXT NOT NULL,
    at         INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX tickets_by_time ON tickets (at);
