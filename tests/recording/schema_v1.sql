PRAGMA application_id = 1869900658;
PRAGMA user_version = 1;

CREATE TABLE sessions (
    id TEXT NOT NULL PRIMARY KEY,
    run TEXT NOT NULL,
    started_ns INTEGER NOT NULL,
    host TEXT,
    pid INTEGER,
    ppid INTEGER,
    program TEXT,
    python TEXT,
    pid_space TEXT,
    process_start INTEGER
) WITHOUT ROWID;
CREATE INDEX sessions_by_run ON sessions (run, started_ns);

CREATE TABLE trips (
    session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    parent_seq INTEGER,
    runtime TEXT NOT NULL,
    layer TEXT NOT NULL,
    kernel TEXT NOT NULL,
    started_ns INTEGER NOT NULL,
    duration_ns INTEGER,
    outcome TEXT,
    abandoned TEXT,
    error_type TEXT,
    message TEXT,
    key_id TEXT,
    key_build_id TEXT,
    trace_id TEXT,
    span_id TEXT,
    ir_kept TEXT,
    ir_sha256 TEXT,
    ir_size INTEGER,
    source_kept TEXT,
    source_sha256 TEXT,
    source_size INTEGER,
    key_absent_reason TEXT,
    key_component_other TEXT,
    compilation_outcome_from TEXT,
    compilation_id TEXT,
    compilation_reason TEXT,
    compilation_original_ns INTEGER,
    stage_other INTEGER,
    store_kind TEXT,
    store_location TEXT,
    store_entry TEXT,
    store_lookup TEXT,
    store_stored BOOLEAN,
    store_reason TEXT,
    store_rejected TEXT,
    target TEXT,
    device TEXT,
    device_loaded BOOLEAN,
    artifact_size INTEGER,
    specialization TEXT,
    build TEXT,
    identity TEXT,
    members_names TEXT,
    members_count INTEGER,
    internal BOOLEAN,
    phase TEXT,
    rank INTEGER,
    world_size INTEGER,
    code_function_name TEXT,
    code_file_path TEXT,
    code_line_number INTEGER,
    process_pid INTEGER,
    thread_id INTEGER,
    attributes_other TEXT,
    ir_prefix TEXT,
    source_prefix TEXT,
    PRIMARY KEY (session, seq)
) WITHOUT ROWID;
CREATE INDEX trips_by_key ON trips (key_id, key_build_id) WHERE key_id IS NOT NULL;
CREATE INDEX trips_by_kernel ON trips (kernel);

CREATE TABLE key_components (
    session TEXT NOT NULL,
    seq INTEGER NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (session, seq, name),
    FOREIGN KEY (session, seq) REFERENCES trips (session, seq) ON DELETE CASCADE
) WITHOUT ROWID;

CREATE TABLE stages (
    session TEXT NOT NULL,
    seq INTEGER NOT NULL,
    name TEXT NOT NULL,
    duration_ns INTEGER NOT NULL,
    PRIMARY KEY (session, seq, name),
    FOREIGN KEY (session, seq) REFERENCES trips (session, seq) ON DELETE CASCADE
) WITHOUT ROWID;

CREATE TABLE texts (
    sha256 TEXT NOT NULL PRIMARY KEY,
    text TEXT NOT NULL
);

CREATE VIEW records AS
SELECT sessions.run, sessions.host, sessions.pid, sessions.program, trips.*
FROM trips JOIN sessions ON sessions.id = trips.session
WHERE trips.outcome IS NOT NULL;

CREATE VIEW failures AS
SELECT sessions.run, sessions.host, sessions.pid, sessions.program, trips.*
FROM trips JOIN sessions ON sessions.id = trips.session
WHERE trips.error_type IS NOT NULL;

CREATE VIEW unfinished AS
SELECT sessions.run, sessions.host, sessions.pid, sessions.program, trips.*
FROM trips JOIN sessions ON sessions.id = trips.session
WHERE trips.duration_ns IS NULL;

CREATE VIEW kernels AS
SELECT
    trips.runtime,
    trips.layer,
    trips.kernel,
    count(trips.seq) AS trips,
    count(CASE trips.outcome WHEN 'compiled' THEN 1 END) AS compiled,
    count(CASE trips.outcome WHEN 'loaded' THEN 1 END) AS loaded,
    count(CASE trips.outcome WHEN 'rekeyed' THEN 1 END) AS rekeyed,
    count(trips.error_type) AS failed,
    count(trips.abandoned) AS abandoned,
    count(trips.seq) - count(trips.duration_ns) AS unfinished,
    coalesce(sum(trips.duration_ns), 0) AS duration_ns
FROM trips
GROUP BY trips.runtime, trips.layer, trips.kernel;

CREATE VIEW runs AS
SELECT
    first.run,
    first.started_ns,
    max(trips.started_ns + coalesce(trips.duration_ns, 0)) AS last_ns,
    first.host,
    first.pid,
    first.program,
    count(DISTINCT every.id) AS processes,
    count(trips.seq) AS trips,
    count(CASE trips.outcome WHEN 'compiled' THEN 1 END) AS compiled,
    count(CASE trips.outcome WHEN 'loaded' THEN 1 END) AS loaded,
    count(CASE trips.outcome WHEN 'rekeyed' THEN 1 END) AS rekeyed,
    count(trips.error_type) AS failed,
    count(trips.abandoned) AS abandoned,
    count(trips.seq) - count(trips.duration_ns) AS unfinished
FROM sessions AS first
JOIN sessions AS every ON every.run = first.run
LEFT JOIN trips ON trips.session = every.id
WHERE first.id = (
    SELECT id FROM sessions AS earlier WHERE earlier.run = first.run ORDER BY started_ns, id LIMIT 1
)
GROUP BY first.run;
