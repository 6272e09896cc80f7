-- Which shapes should the warm-up cover? What compiled while serving, but for what comes with another one of these.
WITH late AS (
    SELECT * FROM kernel_trips WHERE service = {service:String} AND phase = 'serving' AND outcome = 'compiled'
)
SELECT
    layer,
    kernel,
    specialization,
    count() AS trips,
    round(sum(duration_ns) / 1e9, 1) AS seconds
FROM late
WHERE (session, ifNull(parent_seq, -1)) NOT IN (SELECT session, seq FROM late)
GROUP BY layer, kernel, specialization
ORDER BY seconds DESC
