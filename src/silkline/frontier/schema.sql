-- The frontier of one job, version 7. Created in one transaction; application_id and user_version mark it.

CREATE TABLE meta (
    job          TEXT    NOT NULL,
    last_token   INTEGER NOT NULL DEFAULT 0,  -- every lease gets the next one; none is ever used twice
    ended_visits INTEGER NOT NULL DEFAULT 0,  -- visits that ended in done or dead: what max_pages counts
    per_host     INTEGER NOT NULL,            -- the limits that queues.due was last computed with
    delay        REAL    NOT NULL,
    ceiling      INTEGER
);

-- Every fingerprint that was ever added. Seen and in no row of requests means done.
CREATE TABLE seen (fingerprint INTEGER PRIMARY KEY);

-- Those of them that were never a request of their own: what pages were redirected to.
CREATE TABLE aliases (fingerprint INTEGER PRIMARY KEY);

-- Requests of each host that were taken since there is a `max_pages_per_host`.
CREATE TABLE taken (host TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID;

-- What the job keeps as it was when it began. ignore_params: JSON array; politeness_by.
CREATE TABLE begun_with (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE hosts (
    id            INTEGER PRIMARY KEY,
    key           TEXT NOT NULL UNIQUE,
    delay         REAL,                        -- NULL: the job's
    cap           INTEGER,                     -- NULL: the job's
    last_start    REAL NOT NULL DEFAULT -1e999,
    last_token    INTEGER NOT NULL DEFAULT 0,
    blocked_until REAL NOT NULL DEFAULT -1e999
);

-- By politeness_by = ip: of each host as in `url.host_of`, the key that it shares with others.
CREATE TABLE groups (host TEXT PRIMARY KEY, key TEXT NOT NULL) WITHOUT ROWID;

-- How fast hosts are asked because of what they answer; most hosts have none.
CREATE TABLE paces (
    host  INTEGER PRIMARY KEY,
    cap   INTEGER NOT NULL,
    delay REAL    NOT NULL,
    state BLOB    NOT NULL  -- what the next decision needs
);

-- Every request that is not done. Its state is its place, so it cannot be in two.
CREATE TABLE requests (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,  -- order of arrival, never given twice
    fingerprint INTEGER NOT NULL,
    host        INTEGER NOT NULL,
    priority    INTEGER NOT NULL,
    state       TEXT    NOT NULL CHECK (state IN ('waiting', 'delayed', 'leased', 'dead')),
    deliveries  INTEGER NOT NULL DEFAULT 0,
    request     TEXT    NOT NULL,                   -- JSON
    due         REAL,                               -- delayed: until then
    token       INTEGER,                            -- leased: proof of holding it
    worker      TEXT,                               -- leased: who has it; dead: who had it last
    expires     REAL,                               -- leased: until then, unless renewed
    cause       TEXT,                               -- delayed, dead: what went wrong last
    error       TEXT,
    at          REAL                                -- leased: when it was given; dead: since when
);
-- `places` alone answers what a host has waiting and how much of it is in flight.
CREATE INDEX places ON requests (state, host, priority DESC, id);
CREATE INDEX delayed ON requests (due) WHERE state = 'delayed';
CREATE UNIQUE INDEX leased ON requests (token) WHERE state = 'leased';
CREATE INDEX leased_until ON requests (expires) WHERE state = 'leased';
CREATE INDEX dead ON requests (state, cause, at) WHERE state = 'dead';

-- One row per host and priority with something waiting, so that a lease meets only hosts that are due.
-- due: since when, or from when, it may be handed out; infinite while the host has no free slot.
-- turn: the host's last token; of the hosts that were served at the same moment, the first is first again.
CREATE TABLE queues (
    host     INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    due      REAL    NOT NULL,
    turn     INTEGER NOT NULL,
    PRIMARY KEY (host, priority)
) WITHOUT ROWID;
CREATE INDEX queues_by_due ON queues (priority, due, turn, host);

-- Pages that are done but for some of their items. id: that which the request had among `requests`.
CREATE TABLE dead_pages (
    id          INTEGER PRIMARY KEY,
    fingerprint INTEGER NOT NULL,
    host        INTEGER NOT NULL,
    request     TEXT    NOT NULL,  -- JSON
    at          REAL    NOT NULL
);
CREATE INDEX dead_pages_by_age ON dead_pages (at, id);
CREATE TABLE dead_items (
    page   INTEGER NOT NULL,
    number INTEGER NOT NULL,       -- the item's index on the page
    sink   TEXT    NOT NULL,       -- '': all of them
    url    TEXT    NOT NULL,
    cause  TEXT    NOT NULL,
    error  TEXT    NOT NULL,
    record TEXT    NOT NULL,       -- JSON
    PRIMARY KEY (page, number, sink)
) WITHOUT ROWID;
CREATE INDEX dead_items_by_cause ON dead_items (cause);

CREATE TABLE positions (sink TEXT PRIMARY KEY, position TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- What workers and the operator tell each other: see `protocols.Frontier`, heartbeat and configure.
CREATE TABLE workers (id TEXT PRIMARY KEY, seen REAL NOT NULL, beat TEXT NOT NULL) WITHOUT ROWID;  -- beat: JSON
CREATE TABLE live (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- When a worker last got fewer leases than it asked for, while it was not alone.
CREATE TABLE hungry (worker TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID;

-- What can be found out again, such as robots.txt files; value: bytes.
CREATE TABLE kept (name TEXT PRIMARY KEY, value BLOB NOT NULL, until REAL NOT NULL) WITHOUT ROWID;
CREATE INDEX kept_until ON kept (until);
