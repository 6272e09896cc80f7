-- Why did the key of a kernel change? Each key beside the one before it for the same types: whether compiler and
-- build are others, or the rest, and which parts of the key differ.
WITH keys AS (
    SELECT
        specialization,
        key_id,
        key_build_id,
        min(started) AS since,
        any(service_version) AS version,
        any(key_components) AS parts
    FROM kernel_trips
    WHERE kernel = {kernel:String} AND outcome IS NOT NULL AND key_id IS NOT NULL
    GROUP BY specialization, key_id, key_build_id
)
SELECT
    specialization,
    since,
    version,
    key_build_id != build_before AS build_differs,
    arrayMap(name -> (name, parts_before[name], parts[name]),
        arraySort(arrayFilter(name -> parts[name] != parts_before[name],
            arrayDistinct(arrayConcat(mapKeys(parts), mapKeys(parts_before)))))) AS differing
FROM (
    SELECT
        *,
        row_number() OVER (PARTITION BY specialization ORDER BY since) AS number,
        lagInFrame(parts) OVER (PARTITION BY specialization ORDER BY since) AS parts_before,
        lagInFrame(key_build_id) OVER (PARTITION BY specialization ORDER BY since) AS build_before
    FROM keys
)
WHERE number > 1
ORDER BY since
