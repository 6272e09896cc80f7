-- Why did this request take 40 s? What compiled or loaded for it, and at the same time in processes of its service
-- that have no context of it, such as an engine or another rank.
WITH request AS (
    SELECT min(Timestamp) AS began, max(Timestamp + toIntervalNanosecond(Duration)) AS ended, any(ServiceName) AS name
    FROM otel_traces
    WHERE TraceId = {trace:String}
)
SELECT
    round(dateDiff('ms', request.began, started) / 1000, 1) AS after_s,
    round(duration_ns / 1e9, 3) AS seconds,
    trace_id = {trace:String} AS in_request,
    pod,
    layer,
    kernel,
    specialization,
    outcome,
    compilation_reason AS reason
FROM kernel_trips
CROSS JOIN request
WHERE service = request.name
    AND started < request.ended
    AND started + toIntervalNanosecond(duration_ns) > request.began
ORDER BY started
