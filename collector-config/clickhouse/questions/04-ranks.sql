-- Which rank compiled what another rank compiled too, and was it at the same moment?
SELECT
    substring(one.run, 1, 8) AS run,
    one.layer AS layer,
    one.kernel AS kernel,
    one.rank AS rank,
    other.rank AS other_rank,
    round(least(one.duration_ns, other.duration_ns) / 1e9, 2) AS twice_s,
    round(greatest(0, toInt64(least(one.started_ns + one.duration_ns, other.started_ns + other.duration_ns))
        - greatest(one.started_ns, other.started_ns)) / 1e9, 2) AS overlap_s
FROM kernel_trips AS one
INNER JOIN kernel_trips AS other ON one.run = other.run AND one.layer = other.layer AND one.key_id = other.key_id
    AND one.key_build_id = other.key_build_id
WHERE one.outcome = 'compiled' AND other.outcome = 'compiled' AND one.rank < other.rank
ORDER BY one.started
