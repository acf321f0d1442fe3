-- From version 3 to 4. A job of version 3 was begun with no ignored parameters.

CREATE TABLE aliases (fingerprint INTEGER PRIMARY KEY);
CREATE TABLE taken (host TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE begun_with (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
