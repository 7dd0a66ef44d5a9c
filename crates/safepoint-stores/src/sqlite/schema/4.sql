-- A stop that was seen to says nothing of an earlier one, which may still hold.
ALTER TABLE stops ADD COLUMN seen INTEGER NOT NULL DEFAULT 0;
UPDATE stops SET seen = 1
    WHERE (place & 4294967295) <= (SELECT stops_seen FROM sessions WHERE key = place >> 32);
ALTER TABLE sessions DROP COLUMN stops_seen;
