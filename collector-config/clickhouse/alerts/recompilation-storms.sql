-- ComputeKernelRecompilationStorm, by kernel: one process that compiles the same kernel again and again, also in jobs
-- that are too short for metrics to show it.
SELECT pod, session, kernel, layer, count() AS compiled, uniqExact(specialization) AS specializations
FROM kernel_trips
WHERE started > {now:DateTime} - INTERVAL 1 HOUR AND started <= {now:DateTime}
    AND outcome = 'compiled' AND ifNull(phase, '') != 'startup'
GROUP BY pod, session, kernel, layer
HAVING compiled > 30
ORDER BY compiled DESC
