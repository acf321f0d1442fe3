-- From version 5 to 6. A job of version 5 tells hosts apart by themselves.

CREATE TABLE groups (host TEXT PRIMARY KEY, key TEXT NOT NULL) WITHOUT ROWID;

-- Not by ALTER TABLE: the file's schema is to be the text of `schema.sql`.
CREATE TEMP TABLE meta_5 AS SELECT * FROM main.meta;
DROP TABLE main.meta;
CREATE TABLE meta (
    job          TEXT    NOT NULL,
    last_token   INTEGER NOT NULL DEFAULT 0,
    ended_visits INTEGER NOT NULL DEFAULT 0,
    per_host     INTEGER NOT NULL,
    delay        REAL    NOT NULL,
    ceiling      INTEGER
);
INSERT INTO meta (job, last_token, ended_visits, per_host, delay)
SELECT job, last_token, ended_visits, per_host, delay FROM temp.meta_5;
DROP TABLE temp.meta_5;
