-- ComputeKernelCompileFailing, by kernel: what failed in the last hour.
SELECT kernel, layer, specialization, error_type, count() AS trips, uniqExact(pod) AS pods
FROM kernel_trips
WHERE started > {now:DateTime} - INTERVAL 1 HOUR AND started <= {now:DateTime} AND state = 'failed'
GROUP BY kernel, layer, specialization, error_type
ORDER BY trips DESC
