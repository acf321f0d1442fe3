-- From version 1 to 2. `requests.at` is now set for leases, too; those of version 1 have none.

CREATE TABLE workers (id TEXT PRIMARY KEY, seen REAL NOT NULL, beat TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE live (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE kept (name TEXT PRIMARY KEY, value BLOB NOT NULL, until REAL NOT NULL) WITHOUT ROWID;
CREATE INDEX kept_until ON kept (until);
