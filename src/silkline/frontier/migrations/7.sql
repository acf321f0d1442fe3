-- From version 6 to 7.

CREATE TABLE hungry (worker TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID;
