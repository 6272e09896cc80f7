-- Was the store used at all: is it mounted, is it writable? By store, what it gave, what it took and why it did not.
SELECT
    layer,
    store_kind,
    store_location,
    uniqExact(pod) AS pods,
    countIf(outcome = 'loaded') AS loaded,
    countIf(store_stored = true) AS stored,
    countIf(store_stored = false) AS not_stored,
    countIf(store_rejected IS NOT NULL) AS damaged,
    groupUniqArray(store_reason) AS reasons
FROM kernel_trips
WHERE service = {service:String} AND outcome IS NOT NULL
GROUP BY layer, store_kind, store_location
ORDER BY layer, store_location
