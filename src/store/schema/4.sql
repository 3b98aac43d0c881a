-- Whether a daemon has made the edit. The next one makes it once more after a crash, because a tap
-- that was lost with the one before may have taken it back.
ALTER TABLE outbox ADD COLUMN made INTEGER NOT NULL DEFAULT 0;
