-- INSERT INTO finish (now, outcomes): end the leases that are still held.
--   outcomes: JSON [[token, fingerprint, verdict, after, cause, error, block_host], ...], no token twice;
--   verdict 'done', 'retry' or 'dead'; what a verdict does not need may be missing
-- Answer: temp.ending, the outcomes that counted.

CREATE TEMP TABLE ending (
    token INTEGER PRIMARY KEY, id INTEGER, host INTEGER, priority INTEGER,
    verdict TEXT, after REAL, cause TEXT, error TEXT, block REAL
);

CREATE TEMP VIEW finish AS SELECT 0.0 AS now, '' AS outcomes WHERE 0;
CREATE TEMP TRIGGER finish_verb INSTEAD OF INSERT ON finish BEGIN
    DELETE FROM ending;
    INSERT INTO ending (token, id, host, priority, verdict, after, cause, error, block)
    SELECT r.token, r.id, r.host, r.priority, json_extract(j.value, '$[2]'), json_extract(j.value, '$[3]'),
        json_extract(j.value, '$[4]'), json_extract(j.value, '$[5]'), json_extract(j.value, '$[6]')
    FROM json_each(NEW.outcomes) AS j
    CROSS JOIN requests AS r ON r.state = 'leased' AND r.token = json_extract(j.value, '$[0]')
    WHERE r.fingerprint = json_extract(j.value, '$[1]');

    DELETE FROM requests WHERE id IN (SELECT id FROM ending WHERE verdict = 'done');
    UPDATE requests SET
        state = 'delayed', due = NEW.now + e.after, cause = e.cause, error = e.error,
        request = json_set(request, '$.retry_count', coalesce(json_extract(request, '$.retry_count'), 0) + 1),
        token = NULL, expires = NULL
    FROM ending AS e WHERE requests.id = e.id AND e.verdict = 'retry';
    UPDATE requests SET
        state = 'dead', at = NEW.now, cause = e.cause, error = e.error, token = NULL, expires = NULL
    FROM ending AS e WHERE requests.id = e.id AND e.verdict = 'dead';

    UPDATE meta SET ended_visits = ended_visits + (SELECT count(*) FROM ending WHERE verdict <> 'retry');
    UPDATE hosts SET blocked_until = max(blocked_until, NEW.now + e.block)
    FROM (SELECT host, max(block) AS block FROM ending WHERE block > 0 GROUP BY host) AS e
    WHERE hosts.id = e.host;

    INSERT INTO touched (host, priority) SELECT DISTINCT host, priority FROM ending;
    INSERT INTO settle (now) VALUES (NEW.now);
END;
