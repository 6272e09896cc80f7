-- Did the new image or driver invalidate everything? By release: how much of the start-up was loaded, and whether
-- compiler and build are others than before.
SELECT
    layer,
    service_version,
    count() AS records,
    round(countIf(outcome = 'loaded') / records, 2) AS loaded_share,
    groupUniqArray(build) AS builds,
    min(started) AS since
FROM kernel_trips
WHERE service = {service:String} AND outcome IS NOT NULL AND ifNull(phase, 'startup') = 'startup'
GROUP BY layer, service_version
ORDER BY layer, since
