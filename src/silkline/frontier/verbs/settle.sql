-- What the verbs share. Each verb is one trigger on a view of its name, so that it is one statement for
-- the caller: the event loop's thread keeps the interpreter lock busy, and every statement has to win it back.

CREATE TEMP TABLE options (
    worker TEXT, per_host INTEGER, delay REAL, lease_seconds REAL, max_deliveries INTEGER, window REAL,
    ceiling INTEGER
);
CREATE TEMP TABLE touched (host INTEGER, priority INTEGER, PRIMARY KEY (host, priority)) WITHOUT ROWID;
CREATE TEMP TABLE settled (host INTEGER, priority INTEGER, due REAL, turn INTEGER);

-- A host's free slots, its delay, and the earliest moment that delay and block allow. `min` and `max` of
-- NULL are NULL: then there is no pace, or none counts.
CREATE TEMP VIEW host_state AS
SELECT
    h.id,
    h.key,
    h.last_token,
    coalesce(min(coalesce(h.cap, p.cap), p.cap, o.ceiling), h.cap, o.per_host)
        - (SELECT count(*) FROM requests AS r WHERE r.state = 'leased' AND r.host = h.id) AS free,
    max(coalesce(h.delay, o.delay), coalesce(iif(o.ceiling IS NULL, 0.0, p.delay), 0.0)) AS delay,
    max(
        h.last_start
            + max(coalesce(h.delay, o.delay), coalesce(iif(o.ceiling IS NULL, 0.0, p.delay), 0.0)),
        h.blocked_until
    ) AS earliest
FROM hosts AS h CROSS JOIN options AS o LEFT JOIN paces AS p ON p.host = h.id;

-- INSERT INTO settle (now): make the queues of the touched hosts true again.
CREATE TEMP VIEW settle AS SELECT 0.0 AS now WHERE 0;
CREATE TEMP TRIGGER settle_hosts INSTEAD OF INSERT ON settle BEGIN
    INSERT INTO queues (host, priority, due, turn)
    SELECT t.host, t.priority, NEW.now, h.last_token
    FROM touched AS t CROSS JOIN hosts AS h ON h.id = t.host
    WHERE EXISTS (
        SELECT 1 FROM requests AS r
        WHERE r.state = 'waiting' AND r.host = t.host AND r.priority = t.priority
    )
    ON CONFLICT DO NOTHING;

    DELETE FROM queues
    WHERE host IN (SELECT t.host FROM touched AS t) AND NOT EXISTS (
        SELECT 1 FROM requests AS r
        WHERE r.state = 'waiting' AND r.host = queues.host AND r.priority = queues.priority
    );

    INSERT INTO settled (host, priority, due, turn)
    SELECT q.host, q.priority,
        iif(s.free <= 0, 1e999, max(iif(q.due = 1e999, NEW.now, q.due), s.earliest)), s.last_token
    FROM (SELECT DISTINCT host FROM touched) AS t
    CROSS JOIN host_state AS s ON s.id = t.host
    CROSS JOIN queues AS q ON q.host = t.host;
    UPDATE queues SET due = s.due, turn = s.turn
    FROM settled AS s
    WHERE queues.host = s.host AND queues.priority = s.priority
        AND (queues.due <> s.due OR queues.turn <> s.turn);

    DELETE FROM settled;
    DELETE FROM touched;
END;
