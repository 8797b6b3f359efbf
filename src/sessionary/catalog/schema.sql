-- The catalogue of Sessionary: one row for each session that a list has read. Derived and disposable.
-- `sessionary sql "select …"` reads it. PRAGMA user_version is the version of this schema.
-- Times are UTC in ISO 8601, NULL stands for what a session does not say.

CREATE TABLE sessions (
    kind        TEXT NOT NULL,     -- the layout: amplifier, claude_code, work, ...
    home        TEXT NOT NULL,     -- the folder that the layout was read from
    place       TEXT NOT NULL,     -- the folder or file of the session
    id          TEXT NOT NULL,
    project     TEXT,
    agent       TEXT NOT NULL,
    title       TEXT,
    parent      TEXT,              -- the id of the session that it comes from
    cwd         TEXT,              -- the folder that the agent worked in
    branch      TEXT,              -- its git branch
    messages    INTEGER NOT NULL,
    turns       INTEGER NOT NULL,
    turn_count  INTEGER,           -- what the session itself says
    created     TEXT,
    updated     TEXT,
    size        INTEGER NOT NULL,  -- bytes of its files
    health      TEXT NOT NULL,     -- ok, note, cosmetic, hides_data, stops_resume, lost_data
    nested      INTEGER NOT NULL,  -- 1 for the session of a sub-agent, which belongs to its parent
    version     TEXT,              -- of the agent that wrote it last
    usage       TEXT NOT NULL,     -- JSON, see the view `usage`
    fingerprint BLOB NOT NULL,     -- of the state that was read (opaque)
    checksum    INTEGER NOT NULL,  -- of the row and its problems
    PRIMARY KEY (kind, home, place)
) WITHOUT ROWID;

CREATE TABLE problems (
    kind     TEXT NOT NULL,
    home     TEXT NOT NULL,
    place    TEXT NOT NULL,        -- of the session
    number   INTEGER NOT NULL,     -- in the order in which they were found, from 0
    code     TEXT NOT NULL,
    severity INTEGER NOT NULL,     -- 1 note, 2 cosmetic, 3 hides_data, 4 stops_resume, 5 lost_data
    path     TEXT NOT NULL,
    line     INTEGER,              -- from 1
    byte     INTEGER,              -- from 0
    message  TEXT NOT NULL,
    repair   TEXT,
    span     INTEGER NOT NULL,     -- bytes concerned
    PRIMARY KEY (kind, home, place, number)
) WITHOUT ROWID;

CREATE TABLE progress (
    kind     TEXT NOT NULL,
    home     TEXT NOT NULL,
    place    TEXT NOT NULL,        -- of the session
    cursor   BLOB NOT NULL,        -- up to where its messages are folded (opaque), of large sessions only
    fold     BLOB NOT NULL,        -- what they add up to (opaque)
    checksum INTEGER NOT NULL,     -- of both
    PRIMARY KEY (kind, home, place)
);

CREATE VIEW usage AS            -- one row for each quarter of an hour, model and size of requests
SELECT
    kind,
    home,
    place,                         -- of the session
    iif(json_extract(value, '$[0]') = 0, NULL, datetime(json_extract(value, '$[0]') * 900, 'unixepoch')) AS time,
    json_extract(value, '$[1]') AS model,
    json_extract(value, '$[2]') AS context,         -- every request had more input tokens than this
    json_extract(value, '$[3][0]') AS input,        -- tokens, without those of caches
    json_extract(value, '$[3][1]') AS output,       -- with those of reasoning
    json_extract(value, '$[3][2]') AS cache_read,
    json_extract(value, '$[3][3]') AS cache_write,
    json_extract(value, '$[3][4]') AS reasoning,
    json_extract(value, '$[3][5]') AS cost,         -- US dollars, if the agent states it
    json_extract(value, '$[3][6]') AS cache_write_1h,  -- the part that is kept for an hour
    json_extract(value, '$[3][7]') AS web_searches
FROM sessions, json_each(sessions.usage);
