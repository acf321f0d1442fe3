-- INSERT INTO add_requests (now, groups, fingerprints, requests): mark as seen and enqueue.
--   groups: JSON [[host key, priority], ...]
--   fingerprints: JSON array, sorted, so that neighbours share a page; none twice
--   requests: JSON [[fingerprint, index of its group, request], ...], in order of arrival
-- Answer: temp.added.

CREATE TEMP TABLE arriving (n INTEGER PRIMARY KEY, host INTEGER, priority INTEGER);
CREATE TEMP TABLE known (fingerprint INTEGER PRIMARY KEY);
CREATE TEMP TABLE added (count INTEGER);
INSERT INTO added VALUES (0);

CREATE TEMP VIEW add_requests AS SELECT 0.0 AS now, '' AS groups, '' AS fingerprints, '' AS requests WHERE 0;
CREATE TEMP TRIGGER add_requests_verb INSTEAD OF INSERT ON add_requests BEGIN
    INSERT INTO hosts (key)
    SELECT json_extract(g.value, '$[0]') FROM json_each(NEW.groups) AS g WHERE true
    ON CONFLICT DO NOTHING;

    DELETE FROM arriving;
    INSERT INTO arriving (n, host, priority)
    SELECT g.key, h.id, json_extract(g.value, '$[1]')
    FROM json_each(NEW.groups) AS g JOIN hosts AS h ON h.key = json_extract(g.value, '$[0]');

    DELETE FROM known;
    INSERT INTO known (fingerprint)
    SELECT f.value FROM json_each(NEW.fingerprints) AS f WHERE f.value IN (SELECT fingerprint FROM seen);

    -- No conflict clause: what is enqueued was not seen.
    INSERT INTO seen (fingerprint)
    SELECT f.value FROM json_each(NEW.fingerprints) AS f
    WHERE f.value NOT IN (SELECT fingerprint FROM known);

    INSERT INTO requests (fingerprint, host, priority, state, request)
    SELECT
        json_extract(j.value, '$[0]'), a.host, a.priority, 'waiting', json_extract(j.value, '$[2]')
    FROM json_each(NEW.requests) AS j
    CROSS JOIN arriving AS a ON a.n = json_extract(j.value, '$[1]')
    WHERE NOT EXISTS (SELECT 1 FROM known)
        OR json_extract(j.value, '$[0]') NOT IN (SELECT fingerprint FROM known);

    UPDATE added SET count = changes();
    INSERT INTO touched (host, priority) SELECT a.host, a.priority FROM arriving AS a WHERE true
    ON CONFLICT DO NOTHING;
    INSERT INTO settle (now) VALUES (NEW.now);
END;
