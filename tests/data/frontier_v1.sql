-- A frontier of schema version 1, as its program left it when it was killed.
PRAGMA application_id = 1360793934;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "facts" VALUES('definition','x');
CREATE TABLE hosts (
    id            INTEGER PRIMARY KEY,
    key           TEXT NOT NULL UNIQUE,
    delay         REAL,                        -- NULL: the job's
    cap           INTEGER,                     -- NULL: the job's
    last_start    REAL NOT NULL DEFAULT -1e999,
    last_token    INTEGER NOT NULL DEFAULT 0,
    blocked_until REAL NOT NULL DEFAULT -1e999
);
INSERT INTO "hosts" VALUES(1,'http://a:80',NULL,NULL,1800000001.0,5,-1e999);
INSERT INTO "hosts" VALUES(2,'http://b:80',NULL,NULL,1800000000.5,4,-1e999);
CREATE TABLE meta (
    job          TEXT    NOT NULL,
    last_token   INTEGER NOT NULL DEFAULT 0,  -- every lease gets the next one; none is ever used twice
    ended_visits INTEGER NOT NULL DEFAULT 0,  -- visits that ended in done or dead: what max_pages counts
    per_host     INTEGER NOT NULL,            -- the limits that queues.due was last computed with
    delay        REAL    NOT NULL
);
INSERT INTO "meta" VALUES('old',5,2,3,0.5);
CREATE TABLE positions (sink TEXT PRIMARY KEY, position TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "positions" VALUES('/out.jsonl','7');
CREATE TABLE queues (
    host     INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    due      REAL    NOT NULL,
    turn     INTEGER NOT NULL,
    PRIMARY KEY (host, priority)
) WITHOUT ROWID;
INSERT INTO "queues" VALUES(2,0,1800000001.0,4);
INSERT INTO "queues" VALUES(1,0,1800000001.5,5);
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
    at          REAL                                -- dead: since when
);
INSERT INTO "requests" VALUES(2,8942662907335861947,1,0,'delayed',1,'{"url":"http://a/1","retry_count":1}',1800000060.0,NULL,'killed',NULL,'timeout','no answer',NULL);
INSERT INTO "requests" VALUES(3,-6320673907740904307,1,0,'leased',1,'{"url":"http://a/2"}',NULL,5,'killed',1800000061.0,NULL,NULL,NULL);
INSERT INTO "requests" VALUES(4,-2168881078273752992,1,0,'waiting',0,'{"url":"http://a/3"}',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "requests" VALUES(5,-3352188015649686557,2,0,'dead',1,'{"url":"http://b/0"}',NULL,NULL,'killed',NULL,'http_404','HTTP status 404',1800000000.0);
INSERT INTO "requests" VALUES(6,-1968368046296964274,2,0,'leased',1,'{"url":"http://b/1"}',NULL,4,'killed',1800000060.5,NULL,NULL,NULL);
INSERT INTO "requests" VALUES(7,6707158131190256655,2,0,'waiting',0,'{"url":"http://b/2"}',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "requests" VALUES(8,7908208861362026571,2,0,'waiting',0,'{"url":"http://b/3"}',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE seen (fingerprint INTEGER PRIMARY KEY);
INSERT INTO "seen" VALUES(-6320673907740904307);
INSERT INTO "seen" VALUES(-3352188015649686557);
INSERT INTO "seen" VALUES(-2168881078273752992);
INSERT INTO "seen" VALUES(-1968368046296964274);
INSERT INTO "seen" VALUES(4507145047290116135);
INSERT INTO "seen" VALUES(6707158131190256655);
INSERT INTO "seen" VALUES(7908208861362026571);
INSERT INTO "seen" VALUES(8942662907335861947);
CREATE INDEX places ON requests (state, host, priority DESC, id);
CREATE INDEX delayed ON requests (due) WHERE state = 'delayed';
CREATE UNIQUE INDEX leased ON requests (token) WHERE state = 'leased';
CREATE INDEX leased_until ON requests (expires) WHERE state = 'leased';
CREATE INDEX dead ON requests (state, cause, at) WHERE state = 'dead';
CREATE INDEX queues_by_due ON queues (priority, due, turn, host);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('requests',8);
COMMIT;
