-- ComputeKernelLoadedShareCollapsed, by kernel: loaded in the last half hour and in the day before it.
SELECT
    kernel,
    layer,
    countIf(started > {now:DateTime} - INTERVAL 30 MINUTE) AS records,
    round(countIf(started > {now:DateTime} - INTERVAL 30 MINUTE AND outcome = 'loaded') / records, 2) AS share,
    round(countIf(started <= {now:DateTime} - INTERVAL 30 MINUTE AND outcome = 'loaded')
        / countIf(started <= {now:DateTime} - INTERVAL 30 MINUTE), 2) AS share_before
FROM kernel_trips
WHERE started > {now:DateTime} - INTERVAL 1 DAY AND started <= {now:DateTime} AND outcome IS NOT NULL
GROUP BY kernel, layer
HAVING records > 0 AND share < 0.5 * share_before
ORDER BY share, kernel
