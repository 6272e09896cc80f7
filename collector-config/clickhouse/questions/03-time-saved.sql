-- How much time did the store save? What loaded, beside what the same key took to compile, in the trip before or as
-- the artifact remembers. A load inside another load is a part of that one. Never add layers up.
WITH
    loaded AS (SELECT * FROM kernel_trips WHERE outcome = 'loaded'),
    compiled AS (
        SELECT layer, key_id, key_build_id, argMax(duration_ns, started) AS took_ns
        FROM kernel_trips
        WHERE outcome = 'compiled'
        GROUP BY layer, key_id, key_build_id
    )
SELECT
    layer,
    count() AS loads,
    countIf(known_ns = 0) AS unknown,
    round(sum(if(known_ns > duration_ns, known_ns - duration_ns, 0)) / 1e9, 2) AS saved_s
FROM (
    SELECT loaded.layer AS layer, loaded.duration_ns AS duration_ns,
        if(compiled.took_ns > 0, compiled.took_ns, ifNull(loaded.compilation_original_ns, 0)) AS known_ns
    FROM loaded
    LEFT JOIN compiled ON loaded.layer = compiled.layer AND loaded.key_id = compiled.key_id
        AND loaded.key_build_id = compiled.key_build_id
    WHERE (session, ifNull(parent_seq, -1)) NOT IN (SELECT session, seq FROM loaded)
)
GROUP BY layer
ORDER BY layer
