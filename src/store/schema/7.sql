-- Which coding agent a session runs.
ALTER TABLE sessions ADD COLUMN agent TEXT NOT NULL DEFAULT 'claude';
