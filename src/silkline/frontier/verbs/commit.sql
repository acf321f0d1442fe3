-- INSERT INTO finish (now, done, others): end the leases that are still held.
--   done: JSON [token, ...], of outcomes that say no more than that
--   others: JSON [[token, verdict, after, cause, error, cost, ended, block_host, target, onward], ...]; verdict
--   'done', 'retry', 'dead' or 'moved', cost: 1 where retry_count grows, 0 where spared does and the delivery
--   does not count; ended: 1 where the page budget counts it; target: the key of the host that it is moved to,
--   onward: JSON. It waits there with the priority 1001 (rules.ON_THE_WAY).
--   No token twice.
-- Answer: temp.ending, the outcomes that counted.

CREATE TEMP TABLE ending (
    token INTEGER PRIMARY KEY, id INTEGER, host INTEGER, priority INTEGER,
    verdict TEXT, after REAL, cause TEXT, error TEXT, cost INTEGER, ended INTEGER, block REAL,
    target TEXT, onward TEXT
);

CREATE TEMP VIEW finish AS SELECT 0.0 AS now, '' AS done, '' AS others WHERE 0;
CREATE TEMP TRIGGER finish_verb INSTEAD OF INSERT ON finish BEGIN
    DELETE FROM ending;
    INSERT INTO ending (token, id, host, priority, verdict, ended)
    SELECT r.token, r.id, r.host, r.priority, 'done', 1
    FROM json_each(NEW.done) AS j CROSS JOIN requests AS r ON r.state = 'leased' AND r.token = j.value;
    INSERT INTO ending (
        token, id, host, priority, verdict, after, cause, error, cost, ended, block, target, onward
    )
    SELECT r.token, r.id, r.host, r.priority, json_extract(j.value, '$[1]'), json_extract(j.value, '$[2]'),
        json_extract(j.value, '$[3]'), json_extract(j.value, '$[4]'), json_extract(j.value, '$[5]'),
        json_extract(j.value, '$[6]'), json_extract(j.value, '$[7]'), json_extract(j.value, '$[8]'),
        json_extract(j.value, '$[9]')
    FROM json_each(NEW.others) AS j
    CROSS JOIN requests AS r ON r.state = 'leased' AND r.token = json_extract(j.value, '$[0]');

    DELETE FROM requests WHERE id IN (SELECT id FROM ending WHERE verdict = 'done');
    UPDATE requests SET
        state = 'delayed', due = NEW.now + e.after, cause = e.cause, error = e.error,
        deliveries = deliveries - 1 + e.cost,
        request = json_set(
            request, iif(e.cost, '$.retry_count', '$.spared'),
            coalesce(json_extract(request, iif(e.cost, '$.retry_count', '$.spared')), 0) + 1
        ),
        token = NULL, expires = NULL
    FROM ending AS e WHERE requests.id = e.id AND e.verdict = 'retry';
    UPDATE requests SET
        state = 'dead', at = NEW.now, cause = e.cause, error = e.error, token = NULL, expires = NULL
    FROM ending AS e WHERE requests.id = e.id AND e.verdict = 'dead';

    INSERT INTO hosts (key)
    SELECT json_extract(j.value, '$[8]') FROM json_each(NEW.others) AS j
    WHERE json_extract(j.value, '$[1]') = 'moved'
        AND json_extract(j.value, '$[0]') IN (SELECT token FROM ending)
    ORDER BY j.key
    ON CONFLICT DO NOTHING;
    UPDATE requests SET
        state = 'waiting', host = h.id, priority = 1001, deliveries = deliveries - 1,
        request = json_set(request, '$.onward', json(e.onward)), token = NULL, expires = NULL
    FROM ending AS e JOIN hosts AS h ON h.key = e.target WHERE requests.id = e.id AND e.verdict = 'moved';
    INSERT INTO touched (host, priority)
    SELECT DISTINCT h.id, 1001 FROM ending AS e JOIN hosts AS h ON h.key = e.target WHERE e.verdict = 'moved';

    UPDATE meta SET ended_visits = ended_visits + (SELECT sum(ended) FROM ending)
    WHERE EXISTS (SELECT 1 FROM ending WHERE ended = 1);
    UPDATE hosts SET blocked_until = max(blocked_until, NEW.now + e.block)
    FROM (SELECT host, max(block) AS block FROM ending WHERE block > 0 GROUP BY host) AS e
    WHERE hosts.id = e.host;

    -- A freed slot matters only where there was none, which spares most hosts.
    INSERT INTO touched (host, priority)
    SELECT DISTINCT e.host, e.priority FROM ending AS e
    WHERE e.block > 0 OR EXISTS (SELECT 1 FROM queues AS q WHERE q.host = e.host AND q.due = 1e999)
    ON CONFLICT DO NOTHING;
    INSERT INTO settle (now) VALUES (NEW.now);
END;
