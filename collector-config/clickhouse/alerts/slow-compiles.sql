-- ComputeKernelCompileSlow, by kernel: what took longer than the threshold of its runtime, and in which stage.
SELECT
    kernel,
    layer,
    specialization,
    pod,
    round(duration_ns / 1e9, 1) AS seconds,
    arraySort(stage -> -stage.2, mapFilter((name, ns) -> ns > duration_ns / 10, stages)::Array(Tuple(String, UInt64)))[1].1 AS longest_stage
FROM kernel_trips
WHERE started > {now:DateTime} - INTERVAL 1 HOUR AND started <= {now:DateTime}
    AND outcome = 'compiled'
    AND duration_ns > 1e9 * transform(runtime, ['numba', 'triton', 'torch'], [10, 30, 120], 60)
ORDER BY duration_ns DESC
