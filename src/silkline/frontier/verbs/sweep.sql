-- INSERT INTO sweep (now): what time alone has changed. Bounded, so that no lease takes long.

CREATE TEMP TABLE moving (id INTEGER PRIMARY KEY);

CREATE TEMP VIEW sweep AS SELECT 0.0 AS now WHERE 0;
CREATE TEMP TRIGGER sweep_verb INSTEAD OF INSERT ON sweep BEGIN
    -- Delayed requests whose time has come are waiting again, in their old place.
    INSERT INTO moving (id)
    SELECT id FROM requests WHERE state = 'delayed' AND due <= NEW.now ORDER BY due, id LIMIT 1000;
    INSERT INTO touched (host, priority)
    SELECT r.host, r.priority FROM moving AS m CROSS JOIN requests AS r ON r.id = m.id WHERE true
    ON CONFLICT DO NOTHING;
    UPDATE requests SET state = 'waiting', due = NULL WHERE id IN (SELECT id FROM moving);
    DELETE FROM moving;

    -- Requests whose lease ran out: see rules.crash_backoff.
    INSERT INTO moving (id)
    SELECT id FROM requests WHERE state = 'leased' AND expires <= NEW.now ORDER BY expires, id LIMIT 1000;
    INSERT INTO touched (host, priority)
    SELECT r.host, r.priority FROM moving AS m CROSS JOIN requests AS r ON r.id = m.id WHERE true
    ON CONFLICT DO NOTHING;
    UPDATE meta SET ended_visits = ended_visits + (
        SELECT count(*) FROM moving AS m CROSS JOIN requests AS r ON r.id = m.id
        WHERE r.deliveries >= (SELECT max_deliveries FROM options)
    ) WHERE EXISTS (SELECT 1 FROM moving);
    UPDATE requests SET
        state = CASE
            WHEN deliveries >= (SELECT max_deliveries FROM options) THEN 'dead'
            WHEN deliveries <= 2 THEN 'waiting'
            ELSE 'delayed'
        END,
        due = NEW.now
            + min(60.0, 1 << min(deliveries - 3, 6)) * (0.5 + token * 619 % 1000 / 1000.0),
        cause = 'crash',
        error = 'its worker died or hung ' || deliveries || ' times',
        at = NEW.now,
        token = NULL,
        expires = NULL
    WHERE id IN (SELECT id FROM moving);
    DELETE FROM moving;
    INSERT INTO settle (now) VALUES (NEW.now);
END;
