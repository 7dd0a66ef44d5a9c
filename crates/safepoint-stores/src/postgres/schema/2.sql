-- Puts a whole session there, over nothing or over one that is still as its stamp says. `_texts`: pool, title, label, setup, why it is
-- parked. `_numbers`: priority, spread, head, epoch, last item, items that wait, changes of items, stops, decisions, tries. `_times`:
-- created, updated, due. `_stamp`: head, items, stops, decisions, epoch.
CREATE FUNCTION restore_1(_id text, _is_over boolean, _stamp bigint[], _stamp_chain bytea, _stamp_updated timestamptz,
    _texts text[], _numbers bigint[], _times timestamptz[], _chain bytea, _is_closed boolean, _is_at_rest boolean,
    _positions bigint[], _paths text[], _kinds text[], _versions bigint[], _bytes bytea[], _record_chains bytea[],
    _items bigint[], _clients text[], _item_digests text[], _item_states smallint[], _item_times timestamptz[], _item_bytes bytea[],
    _stops bigint[], _stop_times timestamptz[], _seen boolean[], _stop_bytes bytea[],
    _asked text[], _runs text[], _calls text[], _digests text[], _expires timestamptz[], _questions bytea[], _asked_times timestamptz[],
    _states smallint[], _principals text[], _decided timestamptz[], _decisions bytea[],
    _epochs bigint[], _nodes text[], _heads bigint[], _tenure_times timestamptz[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    _key bigint;
    _newest bigint;
    s sessions%ROWTYPE;
BEGIN
    SELECT * INTO s FROM sessions WHERE id = _id FOR UPDATE;
    IF FOUND THEN
        IF s.holder IS NOT NULL THEN
            RETURN CASE WHEN _is_over THEN 'held' ELSE 'exists' END;
        END IF;
        IF NOT _is_over OR ARRAY[s.head, s.items, s.stops, s.decisions, s.epoch] <> _stamp
            OR s.chain <> _stamp_chain OR s.updated <> _stamp_updated THEN
            RETURN 'exists';
        END IF;
        DELETE FROM records WHERE session = s.key;
        DELETE FROM items WHERE session = s.key;
        DELETE FROM stops WHERE session = s.key;
        DELETE FROM approvals WHERE session = s.key;
        DELETE FROM tenures WHERE session = s.key;
        DELETE FROM sessions WHERE key = s.key;
    ELSIF _is_over THEN
        RETURN 'none';
    END IF;
    INSERT INTO sessions (id, pool, priority, spread, created, updated, minute, title, label, setup, head, chain, epoch, inbox_closed,
            last_item, waiting, items, stops, decisions, due, tries, at_rest, parked)
        VALUES (_id, _texts[1], _numbers[1], _numbers[2], _times[1], _times[2], minute_of(_times[2]), _texts[2], _texts[3], _texts[4],
            _numbers[3], _chain, _numbers[4], _is_closed, _numbers[5], _numbers[6], _numbers[7], _numbers[8], _numbers[9], _times[3],
            _numbers[10], _is_at_rest, _texts[5])
        ON CONFLICT (id) DO NOTHING RETURNING key INTO _key;
    IF _key IS NULL THEN
        RETURN 'exists';
    END IF;
    INSERT INTO records (session, position, path, kind, version, bytes, chain)
        SELECT _key, r.* FROM unnest(_positions, _paths, _kinds, _versions, _bytes, _record_chains) r;
    INSERT INTO items (session, number, client, digest, state, at, bytes)
        SELECT _key, i.* FROM unnest(_items, _clients, _item_digests, _item_states, _item_times, _item_bytes) i;
    INSERT INTO stops (session, number, at, seen, bytes)
        SELECT _key, t.* FROM unnest(_stops, _stop_times, _seen, _stop_bytes) t;
    INSERT INTO approvals (session, id, run, call, digest, expires, bytes, at, state, principal, decided, decision)
        SELECT _key, a.id, a.run, a.call, a.digest, a.expires, a.bytes, a.at, a.state, a.principal, a.decided, a.decision
        FROM unnest(_asked, _runs, _calls, _digests, _expires, _questions, _asked_times, _states, _principals, _decided, _decisions)
            WITH ORDINALITY a(id, run, call, digest, expires, bytes, at, state, principal, decided, decision, n) ORDER BY a.n;
    INSERT INTO tenures (session, epoch, node, head, at)
        SELECT _key, t.* FROM unnest(_epochs, _nodes, _heads, _tenure_times) t;
    -- The next lease has a greater epoch. They are counted up one by one, since setting them could take back what another session was
    -- given meanwhile.
    IF _numbers[4] > 0 THEN
        _newest := nextval('epochs');
        IF _newest < _numbers[4] THEN
            PERFORM nextval('epochs') FROM generate_series(_newest, _numbers[4] - 1);
        END IF;
    END IF;
    RETURN 'restored';
END $$;
