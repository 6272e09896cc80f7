-- It failed or it hangs: which kernel? Failed trips; and trips of which there is a start event, from the option
-- `start_events`, and no span, which is sent when a trip ends.
SELECT * FROM (
    SELECT 'failed' AS how, started, pod, layer, kernel, specialization, error_type
    FROM kernel_trips
    WHERE service = {service:String} AND state = 'failed'
    UNION ALL
    SELECT
        'never ended' AS how,
        Timestamp AS started,
        ResourceAttributes['k8s.pod.name'] AS pod,
        LogAttributes['compute.kernel.layer'] AS layer,
        LogAttributes['compute.kernel.name'] AS kernel,
        NULL AS specialization,
        NULL AS error_type
    FROM otel_logs
    WHERE ServiceName = {service:String}
        AND EventName = 'compute.kernel.compilation.start'
        AND (LogAttributes['compute.kernel.session.id'], toInt64OrZero(LogAttributes['compute.kernel.session.seq']))
            NOT IN (SELECT session, seq FROM kernel_trips WHERE service = {service:String})
)
ORDER BY started, how
