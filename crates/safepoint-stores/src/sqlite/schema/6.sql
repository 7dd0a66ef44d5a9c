-- One lease for all sessions of a process. `pools` is a list as JSON; `state`: 0 serving, 1 draining, 2 buried, 3 gone.
CREATE TABLE nodes (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    host TEXT NOT NULL,
    boot TEXT NOT NULL,
    space TEXT NOT NULL,
    pid INTEGER NOT NULL,
    started INTEGER NOT NULL,
    socket TEXT,
    pools TEXT NOT NULL,
    room INTEGER NOT NULL,
    address TEXT,
    since INTEGER NOT NULL,
    ttl INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    until INTEGER,
    load INTEGER NOT NULL,
    state INTEGER NOT NULL,
    ended INTEGER
) STRICT;
CREATE UNIQUE INDEX nodes_name ON nodes (name) WHERE state < 2;
CREATE INDEX nodes_ended ON nodes (ended) WHERE ended IS NOT NULL;

-- Who held what by a lease of its own is a node of its own.
INSERT INTO nodes (id, name, host, boot, space, pid, started, socket, pools, room, address, since, ttl, expires, until, load, state, ended)
    SELECT 'lease_' || session, 'lease_' || session, host, boot, space, pid, started, socket, '[]', 1, NULL,
        since, max(expires - since, 0), expires, until, 0, 0, NULL FROM leases;
ALTER TABLE leases RENAME TO leases_before;
CREATE TABLE leases (
    session INTEGER PRIMARY KEY,
    node TEXT NOT NULL,
    since INTEGER NOT NULL
) STRICT;
CREATE INDEX leases_node ON leases (node);
INSERT INTO leases SELECT session, 'lease_' || session, since FROM leases_before;
DROP TABLE leases_before;

-- Who held a session from which record on.
CREATE TABLE tenures (
    session INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    node TEXT NOT NULL,
    head INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (session, epoch)
) STRICT;

-- `due`: when it wants an owner; `named`: when that was last said; `tries`: owners that died since it was at rest.
ALTER TABLE sessions ADD COLUMN pool TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN touched INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN due INTEGER;
ALTER TABLE sessions ADD COLUMN named INTEGER;
ALTER TABLE sessions ADD COLUMN tries INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN at_rest INTEGER NOT NULL DEFAULT 1;
ALTER TABLE sessions ADD COLUMN parked TEXT;
CREATE INDEX sessions_due ON sessions (priority, due, id) WHERE due IS NOT NULL AND parked IS NULL;
CREATE INDEX sessions_touched ON sessions (touched);
-- Counts what others did, over all sessions.
ALTER TABLE epochs ADD COLUMN touched INTEGER NOT NULL DEFAULT 0;
-- What waits for an owner already: an item, a decision that was not used, a stop that was not seen to.
UPDATE sessions SET due = updated WHERE key NOT IN (SELECT session FROM leases) AND (
    EXISTS (SELECT 1 FROM items WHERE items.session = sessions.key AND state = 0)
    OR EXISTS (SELECT 1 FROM approvals WHERE approvals.session = sessions.key AND state = 1)
    OR EXISTS (SELECT 1 FROM stops WHERE place BETWEEN sessions.key << 32 AND (sessions.key << 32) + 4294967295 AND seen = 0));
