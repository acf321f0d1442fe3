-- INSERT INTO lease (now, count, max_pages, least_share, hunger, second_helping): hand out requests whose hosts
-- are due. The last three: see rules.py.
-- Answer: temp.leased_now, one row.

CREATE TEMP TABLE picked (
    n INTEGER PRIMARY KEY, id INTEGER, host INTEGER, priority INTEGER, starts_in REAL, delay REAL
);
CREATE TEMP TABLE leased_now (
    leases TEXT,          -- JSON array of outcome.Lease
    budget INTEGER,       -- how many the page budget allowed; NULL: no budget
    reached INTEGER,      -- whether so many pages have ended
    shared INTEGER,       -- whether other workers lately got fewer leases than they asked for
    next_expiry REAL,     -- NULL: nothing is leased
    next_delayed REAL,
    next_queue REAL       -- NULL: nothing is waiting; infinite: no host has a free slot
);

-- The priorities with something waiting, from the highest: one index seek for each.
CREATE TEMP VIEW levels AS
WITH RECURSIVE level (priority) AS (
    SELECT max(priority) FROM queues
    UNION ALL
    SELECT (SELECT max(q.priority) FROM queues AS q WHERE q.priority < level.priority)
    FROM level WHERE level.priority IS NOT NULL
)
SELECT priority FROM level WHERE priority IS NOT NULL;

CREATE TEMP VIEW lease AS
SELECT 0.0 AS now, 0 AS count, 0 AS max_pages, 0 AS least_share, 0.0 AS hunger, 0.0 AS second_helping WHERE 0;
CREATE TEMP TRIGGER lease_verb INSTEAD OF INSERT ON lease BEGIN
    INSERT INTO sweep (now) SELECT NEW.now
    WHERE EXISTS (SELECT 1 FROM requests WHERE state = 'delayed' AND due <= NEW.now)
        OR EXISTS (SELECT 1 FROM requests WHERE state = 'leased' AND expires <= NEW.now);

    DELETE FROM leased_now;
    INSERT INTO leased_now (shared) SELECT EXISTS (
        SELECT 1 FROM hungry AS u CROSS JOIN options AS o WHERE u.worker <> o.worker AND u.at > NEW.now - NEW.hunger
    );
    UPDATE leased_now SET reached = m.ended_visits >= NEW.max_pages, budget = max(
        0, NEW.max_pages - m.ended_visits - (SELECT count(*) FROM requests WHERE state = 'leased')
    ) FROM meta AS m WHERE NEW.max_pages IS NOT NULL;

    DELETE FROM picked;
    INSERT INTO picked (id, host, priority, starts_in, delay)
    WITH RECURSIVE
    -- The first due queues, highest priority and longest due first. Joined in the order written (CROSS
    -- JOIN), so that LIMIT ends the walk: it never meets more queues than it can use. `room`: how many
    -- the host may get in one lease; `above`: how many of these its higher priorities take.
    due_queue AS (
        SELECT q.priority, q.due, q.turn, q.host, s.delay,
            min(
                iif(n.shared, max(min(s.free, NEW.least_share), s.free / 2), s.free),
                NEW.count,
                iif(s.delay > 0, 1 + CAST(o.window / s.delay AS INTEGER), NEW.count)
            ) AS room,
            (
                SELECT count(*) FROM (
                    SELECT 1 FROM requests AS r
                    WHERE r.state = 'waiting' AND r.host = q.host AND r.priority > q.priority
                    LIMIT NEW.count
                )
            ) AS above
        FROM levels AS l
        CROSS JOIN queues AS q ON q.priority = l.priority AND q.due <= NEW.now
        CROSS JOIN host_state AS s ON s.id = q.host
        CROSS JOIN options AS o
        CROSS JOIN leased_now AS n
        -- To others with a higher limit a host may be due that is full for this worker.
        WHERE room > 0 AND (
            NOT EXISTS (SELECT 1 FROM queues AS u WHERE u.host = q.host AND u.priority > q.priority)
            OR room > above
        )
        LIMIT (SELECT coalesce(min(NEW.count, budget), NEW.count) FROM leased_now)
    ),
    -- Rounds: in each, every due host of one priority gives one request. A row brings its successor,
    -- the ORDER BY of a recursive query makes its rows a priority queue.
    line (priority, round, due, turn, host, id, next_id, delay, room, above) AS (
        SELECT d.priority, 1, d.due, d.turn, d.host,
            (
                SELECT w.id FROM requests AS w
                WHERE w.state = 'waiting' AND w.host = d.host AND w.priority = d.priority
                ORDER BY w.id LIMIT 1
            ),
            (
                SELECT w.id FROM requests AS w
                WHERE w.state = 'waiting' AND w.host = d.host AND w.priority = d.priority
                ORDER BY w.id LIMIT 1 OFFSET 1
            ),
            d.delay, d.room, d.above
        FROM due_queue AS d WHERE d.above < d.room
        UNION ALL
        SELECT t.priority, t.round + 1, t.due, t.turn, t.host, t.next_id,
            (
                SELECT w.id FROM requests AS w
                WHERE w.state = 'waiting' AND w.host = t.host AND w.priority = t.priority
                    AND w.id > t.next_id
                ORDER BY w.id LIMIT 1
            ),
            t.delay, t.room, t.above
        FROM line AS t WHERE t.next_id IS NOT NULL AND t.above + t.round < t.room
        ORDER BY 1 DESC, 2, 3, 4, 5
        LIMIT (SELECT coalesce(min(NEW.count, budget), NEW.count) FROM leased_now)
    )
    SELECT id, host, priority, (above + round - 1) * delay, delay FROM line
    ORDER BY priority DESC, round, due, turn, host;

    UPDATE requests SET
        state = 'leased',
        token = (SELECT last_token FROM meta) + p.n,
        worker = o.worker,
        at = NEW.now,
        deliveries = deliveries + 1,
        expires = NEW.now + p.starts_in + o.lease_seconds
    FROM picked AS p, options AS o WHERE requests.id = p.id;
    UPDATE hosts SET
        last_start = NEW.now + p.starts_in,
        last_token = (SELECT last_token FROM meta) + p.n
    FROM (SELECT host, max(starts_in) AS starts_in, max(n) AS n FROM picked GROUP BY host) AS p
    WHERE hosts.id = p.host;
    INSERT INTO touched (host, priority) SELECT DISTINCT host, priority FROM picked;
    INSERT INTO settle (now) VALUES (NEW.now);

    UPDATE leased_now SET
        leases = (
            SELECT group_concat(
                '{"request":' || r.request || ',"token":' || r.token || ',"fingerprint":' || r.fingerprint
                || ',"host":' || json_quote(h.key) || ',"deliveries":' || r.deliveries
                || iif(p.delay > 0, ',"starts_in":' || p.starts_in || ',"delay":' || p.delay, '') || '}'
            )
            FROM (SELECT * FROM picked ORDER BY n) AS p
            CROSS JOIN requests AS r ON r.id = p.id CROSS JOIN hosts AS h ON h.id = p.host
        ),
        next_expiry = (SELECT min(expires) FROM requests WHERE state = 'leased'),
        next_delayed = (SELECT min(due) FROM requests WHERE state = 'delayed'),
        next_queue = (
            SELECT min((SELECT min(q.due) FROM queues AS q WHERE q.priority = l.priority)) FROM levels AS l
        );
    -- What is due now is left to the others first; or it is due only for those who may have more of its host.
    UPDATE leased_now SET next_queue = NEW.now + NEW.second_helping
    WHERE (shared OR NOT EXISTS (SELECT 1 FROM picked))
        AND next_queue <= NEW.now AND (SELECT count(*) FROM picked) < NEW.count;
    UPDATE meta SET last_token = last_token + (SELECT count(*) FROM picked)
    WHERE EXISTS (SELECT 1 FROM picked);
END;
