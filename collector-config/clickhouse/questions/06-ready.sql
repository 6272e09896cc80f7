-- Is it safe to declare it ready? What compiled, or failed to, while serving: by release, none is the good answer.
SELECT
    service_version,
    layer,
    kernel,
    countIf(outcome = 'compiled') AS compiled,
    countIf(state = 'failed') AS failed,
    round(sum(duration_ns) / 1e9, 1) AS seconds
FROM kernel_trips
WHERE service = {service:String} AND phase = 'serving' AND (outcome = 'compiled' OR state = 'failed')
GROUP BY service_version, layer, kernel
ORDER BY seconds DESC
