-- `place` is the session's key in the upper half and the row's number within the session in the lower: the rows of a
-- session lie together, in order, without an index of their own.
CREATE TABLE sessions (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    label TEXT NOT NULL,
    title TEXT NOT NULL,
    head INTEGER NOT NULL,
    chain BLOB NOT NULL,
    epoch INTEGER NOT NULL,
    inbox_closed INTEGER NOT NULL,
    inbox_changes INTEGER NOT NULL,
    stops INTEGER NOT NULL,
    stops_seen INTEGER NOT NULL,
    decisions INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_newest ON sessions (updated, id);

CREATE TABLE leases (
    session INTEGER PRIMARY KEY,
    host TEXT NOT NULL,
    boot TEXT NOT NULL,
    space TEXT NOT NULL,
    pid INTEGER NOT NULL,
    started INTEGER NOT NULL,
    socket TEXT,
    since INTEGER NOT NULL,
    expires INTEGER NOT NULL
) STRICT;

-- Epochs are counted over all sessions, so that a session that is removed and made again is not mistaken.
CREATE TABLE epochs (newest INTEGER NOT NULL) STRICT;
INSERT INTO epochs VALUES (0);

CREATE TABLE records (
    place INTEGER PRIMARY KEY,
    path TEXT NOT NULL,
    kind TEXT NOT NULL,
    version INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    chain BLOB NOT NULL
) STRICT;

CREATE TABLE items (
    place INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    client TEXT,
    digest TEXT NOT NULL,
    state INTEGER NOT NULL,
    at INTEGER NOT NULL,
    bytes BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX items_client ON items (session, client) WHERE client IS NOT NULL;
CREATE INDEX items_present ON items (session, place) WHERE state < 2;

CREATE TABLE stops (
    place INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    bytes BLOB NOT NULL
) STRICT;

CREATE TABLE approvals (
    key INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    id TEXT NOT NULL,
    run TEXT NOT NULL,
    call TEXT NOT NULL,
    digest TEXT NOT NULL,
    expires INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    at INTEGER NOT NULL,
    state INTEGER NOT NULL,
    principal TEXT,
    decided INTEGER,
    decision BLOB,
    UNIQUE (session, id)
) STRICT;
