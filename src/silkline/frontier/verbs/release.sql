-- INSERT INTO give_back (now, tokens): leases that were not started are waiting again, in their old place.
--   tokens: JSON array; NULL means every lease of this worker

CREATE TEMP VIEW give_back AS SELECT 0.0 AS now, '' AS tokens WHERE 0;
CREATE TEMP TRIGGER give_back_verb INSTEAD OF INSERT ON give_back BEGIN
    INSERT INTO moving (id)
    SELECT r.id FROM json_each(NEW.tokens) AS j
    CROSS JOIN requests AS r ON r.state = 'leased' AND r.token = j.value WHERE true
    ON CONFLICT DO NOTHING;
    INSERT INTO moving (id)
    SELECT id FROM requests
    WHERE NEW.tokens IS NULL AND state = 'leased' AND worker = (SELECT worker FROM options);

    INSERT INTO touched (host, priority)
    SELECT r.host, r.priority FROM moving AS m CROSS JOIN requests AS r ON r.id = m.id WHERE true
    ON CONFLICT DO NOTHING;
    UPDATE requests SET state = 'waiting', deliveries = deliveries - 1, token = NULL, expires = NULL
    WHERE id IN (SELECT id FROM moving);
    DELETE FROM moving;
    INSERT INTO settle (now) VALUES (NEW.now);
END;
