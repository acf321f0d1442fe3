-- Responses by the hash of their URL, of who fetched them, and of the values that Vary names.
CREATE TABLE IF NOT EXISTS responses (
    url BLOB NOT NULL,
    owner BLOB NOT NULL,
    variant BLOB NOT NULL,
    id BLOB NOT NULL,
    meta BLOB NOT NULL,
    body BLOB NOT NULL,
    size INTEGER NOT NULL,
    used REAL NOT NULL,
    PRIMARY KEY (url, owner, variant)
);
CREATE INDEX IF NOT EXISTS responses_by_use ON responses (used, size);
