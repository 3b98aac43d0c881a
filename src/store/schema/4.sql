-- How often Feishu has taken the edit. A tap that was lost may have taken it back, so it is made again,
-- by the next daemon too; the count says which edits need it most, and which have been made enough.
ALTER TABLE outbox ADD COLUMN made INTEGER NOT NULL DEFAULT 0;
