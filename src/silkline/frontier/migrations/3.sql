-- From version 2 to 3.

CREATE TABLE paces (
    host  INTEGER PRIMARY KEY,
    cap   INTEGER NOT NULL,
    delay REAL    NOT NULL,
    state BLOB    NOT NULL
);
