-- Files that people sent to sessions: what nod itself put into its own directory, and may take away.
CREATE TABLE files (
    session INTEGER NOT NULL,
    name    TEXT NOT NULL,
    device  INTEGER NOT NULL,
    inode   INTEGER NOT NULL,
    bytes   INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (session, name)
) STRICT, WITHOUT ROWID;

-- The answers of before held whole cards, tool input included.
DELETE FROM answers;

-- Said in so many words: where the row is missing, nobody knows.
INSERT OR IGNORE INTO meta (key, value) VALUES ('locked', 'no');
