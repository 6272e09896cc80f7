-- Which kernels are compiled again at each start? Of all starts of a service, those that compiled the same code for
-- the same types, and why the store did not have it.
SELECT
    layer,
    kernel,
    specialization,
    uniqExact(run) AS starts,
    (SELECT uniqExact(run) FROM kernel_trips WHERE service = {service:String}) AS of_starts,
    count() AS trips,
    round(sum(duration_ns) / 1e9, 1) AS seconds,
    groupUniqArray(store_reason) AS not_stored
FROM kernel_trips
WHERE service = {service:String} AND outcome = 'compiled'
GROUP BY layer, kernel, specialization, identity
HAVING starts > 1
ORDER BY starts DESC, seconds DESC
