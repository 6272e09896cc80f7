-- Is the time in our front end, in the compiler, or in loading? By layer and stage; stages of one trip may overlap.
SELECT
    layer,
    stage,
    count() AS trips,
    round(sum(stage_ns) / 1e9, 2) AS seconds,
    round(sum(stage_ns) / sum(duration_ns), 2) AS share
FROM kernel_trips
ARRAY JOIN mapKeys(stages) AS stage, mapValues(stages) AS stage_ns
WHERE service = {service:String} AND outcome = 'compiled'
GROUP BY layer, stage
ORDER BY layer, seconds DESC, stage
