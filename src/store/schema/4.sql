-- How many daemons have made the edit. Each makes it once more after a crash, because a tap that was
-- lost with the one before may have taken it back.
ALTER TABLE outbox ADD COLUMN made INTEGER NOT NULL DEFAULT 0;
