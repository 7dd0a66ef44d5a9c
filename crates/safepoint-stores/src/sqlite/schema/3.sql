-- What the program that opens a session wants to find again, in its own words.
ALTER TABLE sessions ADD COLUMN setup TEXT NOT NULL DEFAULT '';
