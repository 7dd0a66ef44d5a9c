-- When a lease is over by the clock of the holder's machine, in microseconds since its start: nobody can set that one.
ALTER TABLE leases ADD COLUMN until INTEGER;
