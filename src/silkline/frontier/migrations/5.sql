-- From version 4 to 5.

CREATE TABLE dead_pages (
    id          INTEGER PRIMARY KEY,
    fingerprint INTEGER NOT NULL,
    host        INTEGER NOT NULL,
    request     TEXT    NOT NULL,
    at          REAL    NOT NULL
);
CREATE INDEX dead_pages_by_age ON dead_pages (at, id);
CREATE TABLE dead_items (
    page   INTEGER NOT NULL,
    number INTEGER NOT NULL,
    sink   TEXT    NOT NULL,
    url    TEXT    NOT NULL,
    cause  TEXT    NOT NULL,
    error  TEXT    NOT NULL,
    record TEXT    NOT NULL,
    PRIMARY KEY (page, number, sink)
) WITHOUT ROWID;
CREATE INDEX dead_items_by_cause ON dead_items (cause);
