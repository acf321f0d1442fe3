-- INSERT INTO add_requests (now, groups, requests): mark as seen and enqueue.
--   groups: JSON [[host key, priority], ...]
--   requests: JSON [[fingerprint, index of its group, request], ...], no fingerprint twice
-- Answer: temp.added.

CREATE TEMP TABLE arriving (n INTEGER PRIMARY KEY, host INTEGER, priority INTEGER);
CREATE TEMP TABLE added (count INTEGER, before INTEGER);
INSERT INTO added VALUES (0, 0);

CREATE TEMP VIEW add_requests AS SELECT 0.0 AS now, '' AS groups, '' AS requests WHERE 0;
CREATE TEMP TRIGGER add_requests_verb INSTEAD OF INSERT ON add_requests BEGIN
    UPDATE added
    SET count = 0, before = coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'requests'), 0);

    INSERT INTO hosts (key)
    SELECT json_extract(g.value, '$[0]') FROM json_each(NEW.groups) AS g WHERE true
    ON CONFLICT DO NOTHING;

    DELETE FROM arriving;
    INSERT INTO arriving (n, host, priority)
    SELECT g.key, h.id, json_extract(g.value, '$[1]')
    FROM json_each(NEW.groups) AS g JOIN hosts AS h ON h.key = json_extract(g.value, '$[0]');

    INSERT INTO requests (fingerprint, host, priority, state, request)
    SELECT
        json_extract(j.value, '$[0]'), a.host, a.priority, 'waiting', json_extract(j.value, '$[2]')
    FROM json_each(NEW.requests) AS j
    CROSS JOIN arriving AS a ON a.n = json_extract(j.value, '$[1]')
    WHERE json_extract(j.value, '$[0]') NOT IN (SELECT fingerprint FROM seen);

    UPDATE added SET count = changes();

    -- No conflict clause: what was enqueued was not seen. Sorted, so that neighbours share a page.
    INSERT INTO seen (fingerprint)
    SELECT r.fingerprint FROM requests AS r WHERE r.id > (SELECT before FROM added) ORDER BY r.fingerprint;

    INSERT INTO touched (host, priority) SELECT a.host, a.priority FROM arriving AS a WHERE true
    ON CONFLICT DO NOTHING;
    INSERT INTO settle (now) VALUES (NEW.now);
END;
