-- ComputeKernelCompiledWhileServing, by kernel: what compiled while serving in the last hour.
SELECT kernel, layer, specialization, count() AS trips, uniqExact(pod) AS pods, round(max(duration_ns) / 1e9, 1) AS slowest_s
FROM kernel_trips
WHERE started > {now:DateTime} - INTERVAL 1 HOUR AND started <= {now:DateTime}
    AND phase = 'serving' AND outcome = 'compiled'
GROUP BY kernel, layer, specialization
ORDER BY slowest_s DESC
