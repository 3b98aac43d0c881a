-- The home of Codex's that holds a session's thread, where it is not the first.
ALTER TABLE sessions ADD COLUMN home TEXT;
