-- ComputeKernelStoreTakesNothing, by kernel: what the store did not take in the last hour, and why.
SELECT kernel, layer, store_location, store_reason, count() AS trips, uniqExact(pod) AS pods
FROM kernel_trips
WHERE started > {now:DateTime} - INTERVAL 1 HOUR AND started <= {now:DateTime} AND store_stored = false
GROUP BY kernel, layer, store_location, store_reason
ORDER BY trips DESC
