-- Texts are compared byte by byte, and have no NUL: it is stored as U+0001 `0`, and U+0001 as U+0001 `1`, which keeps the order.
CREATE TABLE meta (one boolean PRIMARY KEY DEFAULT true CHECK (one), version integer NOT NULL);

-- Epochs are counted over all sessions, so that a session that is removed and made again is not mistaken.
CREATE SEQUENCE epochs;

-- `state`: 0 serving, 1 draining, 2 buried, 3 gone. `ttl` and `until` are microseconds.
CREATE TABLE nodes (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    name text COLLATE "C" NOT NULL,
    host text NOT NULL,
    boot text NOT NULL,
    space text NOT NULL,
    pid bigint NOT NULL,
    started bigint NOT NULL,
    socket text,
    pools text[] NOT NULL,
    room bigint NOT NULL,
    address text,
    since timestamptz NOT NULL,
    ttl bigint NOT NULL,
    expires timestamptz NOT NULL,
    until bigint,
    load bigint NOT NULL DEFAULT 0,
    state smallint NOT NULL DEFAULT 0,
    ended timestamptz
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX nodes_name ON nodes (name) WHERE state < 2;
CREATE INDEX nodes_ended ON nodes (ended) WHERE ended IS NOT NULL;

-- `holder` is a node that is present, or null. `serial` counts the appends, and `mark` is a number that the last one made up: by both
-- an append is known that is asked again. `updated` has no index, so that an append need not write one; `minute` has, and changes once
-- a minute. `touched` is the transaction by which others last gave its holder something to do; `hinted` is when it was last named as
-- due.
CREATE TABLE sessions (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    pool text COLLATE "C" NOT NULL,
    priority smallint NOT NULL,
    spread smallint NOT NULL,
    created timestamptz NOT NULL,
    updated timestamptz NOT NULL,
    minute timestamptz NOT NULL,
    title text NOT NULL,
    label text NOT NULL,
    setup text NOT NULL,
    head bigint NOT NULL,
    chain bytea NOT NULL,
    serial bigint NOT NULL DEFAULT 0,
    mark bigint NOT NULL DEFAULT 0,
    epoch bigint NOT NULL DEFAULT 0,
    holder text COLLATE "C",
    since timestamptz,
    inbox_closed boolean NOT NULL DEFAULT false,
    last_item bigint NOT NULL DEFAULT 0,
    waiting bigint NOT NULL DEFAULT 0,
    items bigint NOT NULL DEFAULT 0,
    stops bigint NOT NULL DEFAULT 0,
    decisions bigint NOT NULL DEFAULT 0,
    touched xid8,
    due timestamptz,
    hinted timestamptz,
    tries smallint NOT NULL DEFAULT 0,
    at_rest boolean NOT NULL DEFAULT true,
    parked text
) WITH (fillfactor = 70);
CREATE INDEX sessions_held ON sessions (holder) WHERE holder IS NOT NULL;
CREATE INDEX sessions_due ON sessions (priority, due, id) WHERE due IS NOT NULL AND parked IS NULL;
CREATE INDEX sessions_listed ON sessions (minute);
CREATE INDEX sessions_pool ON sessions (pool) WHERE pool <> '';

CREATE TABLE tenures (
    session bigint NOT NULL,
    epoch bigint NOT NULL,
    node text COLLATE "C" NOT NULL,
    head bigint NOT NULL,
    at timestamptz NOT NULL,
    PRIMARY KEY (session, epoch)
);

CREATE TABLE records (
    session bigint NOT NULL,
    position bigint NOT NULL,
    path text NOT NULL,
    kind text NOT NULL,
    version bigint NOT NULL,
    bytes bytea NOT NULL,
    chain bytea NOT NULL,
    PRIMARY KEY (session, position)
);

-- `state`: 0 waiting, 1 taken, 2 removed.
CREATE TABLE items (
    session bigint NOT NULL,
    number bigint NOT NULL,
    client text COLLATE "C",
    digest text NOT NULL,
    state smallint NOT NULL,
    at timestamptz NOT NULL,
    bytes bytea NOT NULL,
    PRIMARY KEY (session, number)
);
CREATE UNIQUE INDEX items_client ON items (session, client) WHERE client IS NOT NULL;
CREATE INDEX items_present ON items (session, number) WHERE state < 2;

CREATE TABLE stops (
    session bigint NOT NULL,
    number bigint NOT NULL,
    at timestamptz NOT NULL,
    seen boolean NOT NULL DEFAULT false,
    bytes bytea NOT NULL,
    PRIMARY KEY (session, number)
);

-- `state`: 0 open, 1 decided, 2 decided and used, 3 withdrawn, 4 expired. `nth` is their order.
CREATE TABLE approvals (
    session bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    nth bigint GENERATED ALWAYS AS IDENTITY,
    run text NOT NULL,
    call text NOT NULL,
    digest text NOT NULL,
    expires timestamptz NOT NULL,
    bytes bytea NOT NULL,
    at timestamptz NOT NULL,
    state smallint NOT NULL DEFAULT 0,
    principal text,
    decided timestamptz,
    decision bytea,
    PRIMARY KEY (session, id)
);
CREATE INDEX approvals_open ON approvals (session) WHERE state = 0;
CREATE INDEX approvals_asked ON approvals (at) WHERE state = 0;

-- Functions: one call is one request. They lock a session's row first, and many rows in order of their keys. `_now` is null but in
-- tests: the time is this server's. A function that was released is never changed; a changed one gets another number.

CREATE FUNCTION minute_of(_at timestamptz) RETURNS timestamptz LANGUAGE sql IMMUTABLE
    RETURN date_bin('1 minute', _at, timestamptz '2000-01-01 00:00:00+00');

-- What is not durable is in order, and is there after the death of the process that asked for it.
CREATE FUNCTION class_1(_is_durable boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF NOT _is_durable THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
END $$;

-- How long a session waits for its next owner after as many have died.
CREATE FUNCTION retry_after(_spread smallint, _tries integer) RETURNS interval LANGUAGE sql IMMUTABLE
    RETURN interval '1 microsecond' * (SELECT base + base / 128 * _spread
        FROM (SELECT (ARRAY[0, 0, 2, 8, 30])[least(_tries, 4) + 1] * 1000000::bigint AS base) b);

-- Ends a node, if it is as its judge saw it, and what it held wants an owner, or is parked.
CREATE FUNCTION bury_one_1(_node text, _expires timestamptz, _until bigint, _now timestamptz) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM sessions WHERE holder = _node ORDER BY key FOR UPDATE;
    UPDATE nodes SET state = 2, ended = _now
        WHERE id = _node AND state < 2 AND expires = _expires AND until IS NOT DISTINCT FROM _until;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE sessions s SET holder = NULL, since = NULL, tries = t.tries,
            parked = CASE WHEN t.tries >= 5 THEN 'its owners died five times before it was at rest' ELSE s.parked END,
            due = CASE WHEN t.tries >= 5 THEN NULL ELSE _now + retry_after(s.spread, t.tries) END
        FROM (SELECT key, (tries + (NOT at_rest)::integer)::smallint AS tries FROM sessions WHERE holder = _node) t
        WHERE s.key = t.key AND s.holder = _node;
    RETURN true;
END $$;

CREATE FUNCTION bury_1(_nodes text[], _expires timestamptz[], _untils bigint[], _now timestamptz) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    _at timestamptz;
    _buried text[] := '{}';
BEGIN
    PERFORM 1 FROM sessions WHERE holder = ANY (_nodes) ORDER BY key FOR UPDATE;
    _at := coalesce(_now, clock_timestamp());
    FOR i IN 1 .. cardinality(_nodes) LOOP
        IF bury_one_1(_nodes[i], _expires[i], _untils[i], _at) THEN
            _buried := _buried || _nodes[i];
        END IF;
    END LOOP;
    RETURN _buried;
END $$;

-- `_judged` is a namesake that may be buried. `_is_again`: an earlier try may have been done.
CREATE FUNCTION join_1(_id text, _name text, _owner text[], _pid bigint, _started bigint, _pools text[], _room bigint, _address text,
    _ttl bigint, _until bigint, _is_again boolean, _judged text, _judged_expires timestamptz, _judged_until bigint, _now timestamptz,
    OUT _outcome text, OUT _namesake text) LANGUAGE plpgsql AS $$
DECLARE
    _at timestamptz := coalesce(_now, clock_timestamp());
BEGIN
    IF _is_again AND EXISTS (SELECT 1 FROM nodes WHERE id = _id AND name = _name AND state < 2) THEN
        _outcome := 'joined';
        RETURN;
    END IF;
    DELETE FROM nodes WHERE ended < _at - interval '24 hours';
    SELECT id INTO _namesake FROM nodes WHERE name = _name AND state < 2;
    IF FOUND THEN
        IF _namesake IS DISTINCT FROM _judged OR NOT bury_one_1(_judged, _judged_expires, _judged_until, _at) THEN
            _outcome := 'taken';
            RETURN;
        END IF;
    END IF;
    INSERT INTO nodes (id, name, host, boot, space, socket, pid, started, pools, room, address, since, ttl, expires, until)
        VALUES (_id, _name, _owner[1], _owner[2], _owner[3], _owner[4], _pid, _started, _pools, _room, _address, _at, _ttl,
            _at + _ttl * interval '1 microsecond', _until)
        ON CONFLICT (id) DO NOTHING;
    _outcome := CASE WHEN FOUND THEN 'joined' ELSE 'exists' END;
END $$;

CREATE FUNCTION leave_1(_id text, _now timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    _at timestamptz;
BEGIN
    PERFORM 1 FROM sessions WHERE holder = _id ORDER BY key FOR UPDATE;
    _at := coalesce(_now, clock_timestamp());
    UPDATE nodes SET state = 3, ended = _at WHERE id = _id AND state < 2;
    IF FOUND THEN
        UPDATE sessions SET holder = NULL, since = NULL, due = _at WHERE holder = _id;
    END IF;
END $$;

-- Whether the node is still as its judge saw it, or has ended.
CREATE FUNCTION is_dead_1(_node text, _expires timestamptz, _until bigint) RETURNS boolean LANGUAGE sql STABLE
    RETURN NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = _node AND n.state < 2
        AND (n.expires <> _expires OR n.until IS DISTINCT FROM _until));

-- The share of its node's row keeps the node from being buried before this is committed, so that no holder is a node that ended.
CREATE FUNCTION acquire_1(_id text, _node text, _mark bigint, _is_again boolean, _judged text, _judged_expires timestamptz,
    _judged_until bigint, _now timestamptz,
    OUT _outcome text, OUT _epoch bigint, OUT _head bigint, OUT _chain bytea, OUT _serial bigint, OUT _holder text, OUT _why text)
LANGUAGE plpgsql AS $$
DECLARE
    _at timestamptz;
    _state smallint;
    s sessions%ROWTYPE;
BEGIN
    SELECT * INTO s FROM sessions WHERE id = _id FOR UPDATE;
    IF NOT FOUND THEN
        _outcome := 'none';
        RETURN;
    END IF;
    _at := coalesce(_now, clock_timestamp());
    SELECT state INTO _state FROM nodes WHERE id = _node FOR SHARE;
    IF NOT FOUND OR _state >= 2 THEN
        _outcome := 'buried';
        RETURN;
    END IF;
    _holder := s.holder;
    _head := s.head;
    _chain := s.chain;
    _serial := s.serial;
    IF _is_again AND s.holder = _node AND s.mark = _mark THEN
        _epoch := s.epoch;
        _outcome := 'taken';
        RETURN;
    END IF;
    IF _state = 1 THEN
        _outcome := 'draining';
        RETURN;
    END IF;
    IF s.holder IS NOT NULL THEN
        IF s.holder IS DISTINCT FROM _judged OR NOT is_dead_1(_judged, _judged_expires, _judged_until) THEN
            _outcome := 'held';
            RETURN;
        END IF;
        IF s.holder = _node THEN
            _outcome := 'buried';
            RETURN;
        END IF;
        IF s.tries + (NOT s.at_rest)::integer >= 5 THEN
            s.parked := coalesce(s.parked, 'its owners died five times before it was at rest');
        END IF;
    END IF;
    IF s.parked IS NOT NULL THEN
        _outcome := 'parked';
        _why := s.parked;
        RETURN;
    END IF;
    IF s.holder IS NOT NULL AND NOT bury_one_1(_judged, _judged_expires, _judged_until, _at) THEN
        _outcome := 'held';
        RETURN;
    END IF;
    _epoch := nextval('epochs');
    INSERT INTO tenures (session, epoch, node, head, at) VALUES (s.key, _epoch, _node, s.head, _at);
    UPDATE sessions SET holder = _node, since = _at, epoch = _epoch, touched = NULL, due = NULL, hinted = NULL, mark = _mark
        WHERE key = s.key;
    _outcome := 'taken';
END $$;

-- `_rest`: 0 nothing, 1 at a time, 2 now.
CREATE FUNCTION release_1(_id text, _epoch bigint, _node text, _mark bigint, _is_again boolean, _items bigint, _stops bigint,
    _decisions bigint, _rest integer, _rest_micros bigint, _now timestamptz) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    _at timestamptz;
    s sessions%ROWTYPE;
BEGIN
    SELECT * INTO s FROM sessions WHERE id = _id FOR UPDATE;
    IF NOT FOUND OR s.epoch <> _epoch THEN
        RETURN false;
    END IF;
    IF s.holder IS DISTINCT FROM _node THEN
        RETURN _is_again AND s.holder IS NULL AND s.mark = _mark;
    END IF;
    _at := coalesce(_now, clock_timestamp());
    UPDATE sessions SET holder = NULL, since = NULL, tries = 0, at_rest = true, mark = _mark,
            due = CASE WHEN s.items > _items OR s.stops > _stops OR s.decisions > _decisions OR _rest = 2 THEN _at
                WHEN _rest = 1 THEN _at + _rest_micros * interval '1 microsecond' END
        WHERE key = s.key;
    RETURN true;
END $$;

-- Appends of many sessions, each with its fence. Which of them were done, counted from 1. What one does beside its records is `_labels`,
-- `_titles` and `_rests` (null: as it was), and `_ops` with their `_numbers`, of which it has `_counts`; it is done if each of these can
-- be, whatever their order. No two of one append are about the same item.
CREATE FUNCTION appends_1(_ids text[], _nodes text[], _epochs bigint[], _serials bigint[], _olds bigint[], _marks bigint[],
    _news boolean[], _nexts bigint[], _chains bytea[],
    _labels text[], _titles text[], _rests boolean[], _resets boolean[], _counts bigint[],
    _of bigint[], _positions bigint[], _paths text[], _kinds text[], _versions bigint[], _bytes bytea[], _record_chains bytea[],
    _ops_of bigint[], _ops text[], _numbers bigint[],
    _is_durable boolean, _now timestamptz) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    _at timestamptz;
    _done bigint[];
BEGIN
    PERFORM class_1(_is_durable);
    PERFORM 1 FROM sessions WHERE id = ANY (_ids) ORDER BY key FOR UPDATE;
    _at := coalesce(_now, clock_timestamp());
    WITH a AS (
        SELECT * FROM unnest(_ids, _nodes, _epochs, _serials, _olds, _marks, _news, _nexts, _chains, _labels, _titles, _rests,
                _resets, _counts)
            WITH ORDINALITY a(id, node, epoch, serial, old, mark, news, next, chain, label, title, rest, reset, count, n)
    ), op AS (
        SELECT s.key, w.n, w.op, w.number
            FROM unnest(_ops_of, _ops, _numbers) w(n, op, number) JOIN a USING (n) JOIN sessions s ON s.id = a.id
    ), item AS (
        SELECT op.key, op.n, op.op, op.number, i.state
            FROM op JOIN items i ON i.session = op.key AND i.number = op.number
            WHERE (op.op = 'take' AND i.state = 0) OR (op.op = 'remove' AND i.state < 2)
    ), stop AS (
        SELECT op.key, op.n, op.number FROM op JOIN stops t ON t.session = op.key AND t.number = op.number WHERE op.op = 'seen'
    ), able AS (
        SELECT n, count(*) AS count, count(*) FILTER (WHERE state = 0) AS waited
            FROM (SELECT n, state FROM item UNION ALL SELECT n, NULL FROM stop) o GROUP BY n
    ), done AS (
        UPDATE sessions s SET head = b.next, chain = b.chain, serial = s.serial + 1, mark = b.mark,
                updated = CASE WHEN b.news THEN _at ELSE s.updated END,
                minute = CASE WHEN b.news THEN minute_of(_at) ELSE s.minute END,
                label = coalesce(b.label, s.label), title = coalesce(b.title, s.title),
                at_rest = coalesce(b.rest, s.at_rest), tries = CASE WHEN b.reset THEN 0 ELSE s.tries END,
                waiting = s.waiting - coalesce(b.waited, 0)
            FROM (SELECT a.*, able.count AS able, able.waited FROM a LEFT JOIN able USING (n)) b
            -- By `=` a plan that was made when few sessions were held would look at each that its node holds.
            WHERE s.id = b.id AND s.holder IS NOT DISTINCT FROM b.node AND s.epoch = b.epoch AND s.serial = b.serial
                AND s.mark = b.old AND coalesce(b.able, 0) = b.count
            RETURNING s.key, b.n
    ), written AS (
        INSERT INTO records (session, position, path, kind, version, bytes, chain)
            SELECT done.key, r.position, r.path, r.kind, r.version, r.bytes, r.chain
            FROM unnest(_of, _positions, _paths, _kinds, _versions, _bytes, _record_chains)
                r(n, position, path, kind, version, bytes, chain) JOIN done USING (n)
    ), moved AS (
        UPDATE items i SET state = CASE item.op WHEN 'take' THEN 1 ELSE 2 END,
                bytes = CASE item.op WHEN 'take' THEN i.bytes ELSE '' END
            FROM item JOIN done USING (n) WHERE i.session = item.key AND i.number = item.number
    ), seen AS (
        UPDATE stops t SET seen = true
            FROM stop JOIN done USING (n) WHERE t.session = stop.key AND t.number = stop.number
    )
    SELECT array_agg(n) INTO _done FROM (
        SELECT n FROM done
        UNION ALL
        -- A try of it before was written, and its answer was lost.
        SELECT a.n FROM a JOIN sessions s ON s.id = a.id
            WHERE s.serial = a.serial + 1 AND s.mark = a.mark AND s.chain = a.chain
    ) known;
    RETURN coalesce(_done, '{}');
END $$;

-- One append with whatever its holder writes, in order. A write that cannot be done undoes all: its place is the error's message.
CREATE FUNCTION append_1(_id text, _node text, _epoch bigint, _serial bigint, _old bigint, _mark bigint, _is_news boolean,
    _next bigint, _chain bytea,
    _positions bigint[], _paths text[], _kinds text[], _versions bigint[], _bytes bytea[], _record_chains bytea[],
    _ops text[], _numbers bigint[], _words text[],
    _asked text[], _runs text[], _calls text[], _digests text[], _expires timestamptz[], _questions bytea[],
    _is_durable boolean, _now timestamptz, OUT _is_done boolean, OUT _decided text[]) LANGUAGE plpgsql AS $$
DECLARE
    _at timestamptz;
    _state smallint;
    _to smallint;
    s sessions%ROWTYPE;
BEGIN
    PERFORM class_1(_is_durable);
    _decided := '{}';
    SELECT * INTO s FROM sessions WHERE id = _id FOR UPDATE;
    _is_done := FOUND AND s.epoch = _epoch AND s.holder IS NOT DISTINCT FROM _node AND s.serial = _serial AND s.mark = _old;
    IF NOT _is_done THEN
        RETURN;
    END IF;
    _at := coalesce(_now, clock_timestamp());
    INSERT INTO records (session, position, path, kind, version, bytes, chain)
        SELECT s.key, r.* FROM unnest(_positions, _paths, _kinds, _versions, _bytes, _record_chains) r;
    FOR i IN 1 .. cardinality(_ops) LOOP
        CASE _ops[i]
        WHEN 'take' THEN
            UPDATE items SET state = 1 WHERE session = s.key AND number = _numbers[i] AND state = 0;
            IF NOT FOUND THEN RAISE EXCEPTION '%', i USING ERRCODE = 'SP001'; END IF;
            s.waiting := s.waiting - 1;
        WHEN 'put back' THEN
            UPDATE items SET state = 0 WHERE session = s.key AND number = _numbers[i] AND state = 1;
            IF NOT FOUND THEN RAISE EXCEPTION '%', i USING ERRCODE = 'SP001'; END IF;
            s.waiting := s.waiting + 1;
        WHEN 'remove' THEN
            SELECT state INTO _state FROM items WHERE session = s.key AND number = _numbers[i] AND state < 2;
            IF NOT FOUND THEN RAISE EXCEPTION '%', i USING ERRCODE = 'SP001'; END IF;
            UPDATE items SET state = 2, bytes = '' WHERE session = s.key AND number = _numbers[i];
            IF _state = 0 THEN s.waiting := s.waiting - 1; END IF;
        WHEN 'close' THEN s.inbox_closed := true;
        WHEN 'open' THEN s.inbox_closed := false;
        WHEN 'seen' THEN
            UPDATE stops SET seen = true WHERE session = s.key AND number = _numbers[i];
            IF NOT FOUND THEN RAISE EXCEPTION '%', i USING ERRCODE = 'SP002'; END IF;
        WHEN 'ask' THEN
            INSERT INTO approvals (session, id, run, call, digest, expires, bytes, at)
                VALUES (s.key, _asked[_numbers[i]], _runs[_numbers[i]], _calls[_numbers[i]], _digests[_numbers[i]],
                    _expires[_numbers[i]], _questions[_numbers[i]], _at)
                ON CONFLICT (session, id) DO NOTHING;
            IF NOT FOUND THEN RAISE EXCEPTION '%', i USING ERRCODE = 'SP004'; END IF;
        WHEN 'answer' THEN
            -- The number is what it becomes: 2 used, 3 withdrawn, 4 expired.
            SELECT state INTO _state FROM approvals WHERE session = s.key AND id = _words[i];
            IF NOT FOUND OR (_numbers[i] = 2 AND _state NOT IN (1, 2)) THEN
                RAISE EXCEPTION '%', i USING ERRCODE = 'SP003';
            END IF;
            _to := CASE WHEN _numbers[i] = 2 OR _state = 0 THEN _numbers[i] ELSE _state END;
            IF _to <> _state THEN
                UPDATE approvals SET state = _to WHERE session = s.key AND id = _words[i];
            END IF;
            IF _numbers[i] <> 2 AND _state IN (1, 2) THEN
                _decided := _decided || _words[i];
            END IF;
        WHEN 'label' THEN s.label := _words[i];
        WHEN 'title' THEN s.title := _words[i];
        WHEN 'setup' THEN s.setup := _words[i];
        WHEN 'work' THEN s.at_rest := false;
        WHEN 'rest' THEN
            s.at_rest := true;
            s.tries := 0;
        END CASE;
    END LOOP;
    UPDATE sessions SET head = _next, chain = _chain, serial = s.serial + 1, mark = _mark,
            updated = CASE WHEN _is_news THEN _at ELSE s.updated END,
            minute = CASE WHEN _is_news THEN minute_of(_at) ELSE s.minute END,
            label = s.label, title = s.title, setup = s.setup, at_rest = s.at_rest, tries = s.tries,
            inbox_closed = s.inbox_closed, waiting = s.waiting
        WHERE key = s.key;
END $$;

-- `_holder` is to be told.
CREATE FUNCTION push_1(_id text, _client text, _digest text, _bytes bytea, _capacity bigint, _now timestamptz,
    OUT _outcome text, OUT _number bigint, OUT _holder text) LANGUAGE plpgsql AS $$
DECLARE
    _at timestamptz;
    _known text;
    s sessions%ROWTYPE;
BEGIN
    SELECT * INTO s FROM sessions WHERE id = _id FOR UPDATE;
    IF NOT FOUND THEN
        _outcome := 'none';
        RETURN;
    END IF;
    IF _client IS NOT NULL THEN
        SELECT number, digest INTO _number, _known FROM items WHERE session = s.key AND client = _client;
        IF FOUND THEN
            _outcome := CASE WHEN _known = _digest THEN 'same' ELSE 'conflict' END;
            RETURN;
        END IF;
    END IF;
    IF s.inbox_closed OR s.waiting >= _capacity THEN
        _outcome := CASE WHEN s.inbox_closed THEN 'closed' ELSE 'full' END;
        RETURN;
    END IF;
    _at := coalesce(_now, clock_timestamp());
    _outcome := 'accepted';
    _number := s.last_item + 1;
    _holder := s.holder;
    INSERT INTO items (session, number, client, digest, state, at, bytes)
        VALUES (s.key, _number, _client, _digest, 0, _at, _bytes);
    UPDATE sessions SET last_item = _number, waiting = waiting + 1, items = items + 1, updated = _at, minute = minute_of(_at),
            touched = pg_current_xact_id(), due = CASE WHEN holder IS NULL THEN least(due, _at) ELSE due END
        WHERE key = s.key;
END $$;

CREATE FUNCTION withdraw_1(_id text, _item bigint, _now timestamptz,
    OUT _outcome text, OUT _holder text, OUT _client text, OUT _digest text, OUT _since timestamptz, OUT _bytes bytea)
LANGUAGE plpgsql AS $$
DECLARE
    _at timestamptz;
    s sessions%ROWTYPE;
    i items%ROWTYPE;
BEGIN
    SELECT * INTO s FROM sessions WHERE id = _id FOR UPDATE;
    IF NOT FOUND THEN
        _outcome := 'none';
        RETURN;
    END IF;
    SELECT * INTO i FROM items WHERE session = s.key AND number = _item;
    IF NOT FOUND OR i.state <> 0 THEN
        _outcome := CASE WHEN i.number IS NULL THEN 'unknown' ELSE 'taken' END;
        RETURN;
    END IF;
    _at := coalesce(_now, clock_timestamp());
    _outcome := 'item';
    _holder := s.holder;
    _client := i.client;
    _digest := i.digest;
    _since := i.at;
    _bytes := i.bytes;
    UPDATE items SET state = 2, bytes = '' WHERE session = s.key AND number = _item;
    UPDATE sessions SET waiting = waiting - 1, items = items + 1, updated = _at, minute = minute_of(_at),
            touched = pg_current_xact_id(), due = CASE WHEN holder IS NULL THEN least(due, _at) ELSE due END
        WHERE key = s.key;
END $$;

-- `_only`: null withdraws no approval, else these; `_is_all`: each that is open.
CREATE FUNCTION ask_stop_1(_id text, _bytes bytea, _is_all boolean, _only text[], _now timestamptz,
    OUT _number bigint, OUT _holder text) LANGUAGE plpgsql AS $$
DECLARE
    _at timestamptz;
    _withdrawn bigint;
    s sessions%ROWTYPE;
BEGIN
    SELECT * INTO s FROM sessions WHERE id = _id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    _at := coalesce(_now, clock_timestamp());
    _number := s.stops + 1;
    _holder := s.holder;
    INSERT INTO stops (session, number, at, bytes) VALUES (s.key, _number, _at, _bytes);
    UPDATE approvals SET state = 3 WHERE session = s.key AND state = 0 AND (_is_all OR id = ANY (_only));
    GET DIAGNOSTICS _withdrawn = ROW_COUNT;
    UPDATE sessions SET stops = _number, decisions = decisions + _withdrawn, updated = _at, minute = minute_of(_at),
            touched = pg_current_xact_id(), due = CASE WHEN holder IS NULL THEN least(due, _at) ELSE due END
        WHERE key = s.key;
END $$;

-- `_among`: `held`, `node` or `pool` with its name, or `these`. `_missing` is one of these that there is not: nothing was done then.
CREATE FUNCTION ask_stops_1(_among text, _name text, _these text[], _bytes bytea, _now timestamptz,
    OUT _count bigint, OUT _missing text, OUT _holders text[]) LANGUAGE plpgsql AS $$
DECLARE
    _at timestamptz;
    _keys bigint[];
BEGIN
    CASE _among
    WHEN 'held' THEN
        SELECT array_agg(key) INTO _keys FROM
            (SELECT key FROM sessions WHERE holder IS NOT NULL ORDER BY key FOR UPDATE) s;
    WHEN 'node' THEN
        SELECT array_agg(key) INTO _keys FROM
            (SELECT key FROM sessions WHERE holder = _name ORDER BY key FOR UPDATE) s;
    WHEN 'pool' THEN
        SELECT array_agg(key) INTO _keys FROM (SELECT key FROM sessions WHERE pool = _name ORDER BY key FOR UPDATE) s;
    WHEN 'these' THEN
        SELECT array_agg(key) INTO _keys FROM
            (SELECT key FROM sessions WHERE id = ANY (_these) ORDER BY key FOR UPDATE) s;
        SELECT min(t COLLATE "C") INTO _missing FROM unnest(_these) t
            WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE id = t AND key = ANY (_keys));
        IF _missing IS NOT NULL THEN
            RETURN;
        END IF;
    END CASE;
    _at := coalesce(_now, clock_timestamp());
    WITH asked AS (
        UPDATE sessions SET stops = stops + 1, updated = _at, minute = minute_of(_at), touched = pg_current_xact_id(),
                due = CASE WHEN holder IS NULL THEN least(due, _at) ELSE due END
            WHERE key = ANY (_keys) RETURNING key, stops, holder
    ), written AS (
        INSERT INTO stops (session, number, at, bytes) SELECT key, stops, _at, _bytes FROM asked
    )
    SELECT count(*), array_agg(DISTINCT holder) FILTER (WHERE holder IS NOT NULL) INTO _count, _holders FROM asked;
END $$;

CREATE FUNCTION decide_1(_id text, _approval text, _digest text, _principal text, _bytes bytea, _now timestamptz,
    OUT _outcome text, OUT _holder text, OUT _who text, OUT _when timestamptz, OUT _what bytea) LANGUAGE plpgsql AS $$
DECLARE
    _at timestamptz;
    s sessions%ROWTYPE;
    a approvals%ROWTYPE;
BEGIN
    SELECT * INTO s FROM sessions WHERE id = _id FOR UPDATE;
    IF NOT FOUND THEN
        _outcome := 'none';
        RETURN;
    END IF;
    SELECT * INTO a FROM approvals WHERE session = s.key AND id = _approval;
    IF NOT FOUND THEN
        _outcome := 'unknown';
        RETURN;
    END IF;
    _at := coalesce(_now, clock_timestamp());
    CASE
    WHEN a.state IN (1, 2) THEN
        _outcome := 'already';
        _who := a.principal;
        _when := a.decided;
        _what := a.decision;
    WHEN a.state = 3 THEN _outcome := 'withdrawn';
    WHEN a.state <> 0 OR a.expires <= _at THEN _outcome := 'expired';
    WHEN a.digest <> _digest THEN
        _outcome := 'other';
        _who := a.digest;
    ELSE
        _outcome := 'taken';
        _holder := s.holder;
        UPDATE approvals SET state = 1, principal = _principal, decided = _at, decision = _bytes
            WHERE session = s.key AND id = _approval;
        UPDATE sessions SET decisions = decisions + 1, updated = _at, minute = minute_of(_at),
                touched = pg_current_xact_id(), due = CASE WHEN holder IS NULL THEN least(due, _at) ELSE due END
            WHERE key = s.key;
    END CASE;
END $$;

CREATE FUNCTION remove_1(_id text, _is_only_at_rest boolean, _judged text, _judged_expires timestamptz, _judged_until bigint,
    OUT _outcome text, OUT _holder text) LANGUAGE plpgsql AS $$
DECLARE
    s sessions%ROWTYPE;
BEGIN
    SELECT * INTO s FROM sessions WHERE id = _id FOR UPDATE;
    IF NOT FOUND THEN
        _outcome := 'none';
        RETURN;
    END IF;
    _holder := s.holder;
    IF s.holder IS NOT NULL
        AND (s.holder IS DISTINCT FROM _judged OR NOT is_dead_1(_judged, _judged_expires, _judged_until)) THEN
        _outcome := 'held';
        RETURN;
    END IF;
    IF _is_only_at_rest
        AND (s.waiting > 0 OR EXISTS (SELECT 1 FROM approvals WHERE session = s.key AND state < 2)) THEN
        _outcome := 'waits';
        RETURN;
    END IF;
    DELETE FROM records WHERE session = s.key;
    DELETE FROM items WHERE session = s.key;
    DELETE FROM stops WHERE session = s.key;
    DELETE FROM approvals WHERE session = s.key;
    DELETE FROM tenures WHERE session = s.key;
    DELETE FROM sessions WHERE key = s.key;
    _outcome := 'removed';
END $$;

-- A session that somebody else has locked is named the next time.
CREATE FUNCTION due_1(_most bigint, _pools text[], _now timestamptz)
    RETURNS TABLE (_id text, _pool text, _priority smallint, _tries smallint, _since timestamptz) LANGUAGE plpgsql AS $$
DECLARE
    _at timestamptz := coalesce(_now, clock_timestamp());
BEGIN
    PERFORM class_1(false);
    RETURN QUERY UPDATE sessions s SET hinted = _at
        FROM (SELECT key FROM sessions
            WHERE due IS NOT NULL AND parked IS NULL AND due <= _at
                AND (hinted IS NULL OR hinted > _at OR hinted <= _at - interval '5 seconds')
                AND (pool = '' OR pool = ANY (_pools))
            ORDER BY priority, due, id LIMIT _most FOR UPDATE SKIP LOCKED) d
        WHERE s.key = d.key RETURNING s.id, s.pool, s.priority, s.tries, s.due;
END $$;
