-- INSERT INTO resend_dead (now, ids): dead letters are waiting again, with their counts at zero.
--   ids: JSON array of requests.id

CREATE TEMP VIEW resend_dead AS SELECT 0.0 AS now, '' AS ids WHERE 0;
CREATE TEMP TRIGGER resend_dead_verb INSTEAD OF INSERT ON resend_dead BEGIN
    INSERT INTO touched (host, priority)
    SELECT r.host, r.priority FROM json_each(NEW.ids) AS j CROSS JOIN requests AS r ON r.id = j.value WHERE true
    ON CONFLICT DO NOTHING;
    UPDATE requests SET
        state = 'waiting', deliveries = 0, request = json_remove(request, '$.retry_count', '$.spared')
    WHERE state = 'dead' AND id IN (SELECT j.value FROM json_each(NEW.ids) AS j);
    INSERT INTO settle (now) VALUES (NEW.now);
END;
