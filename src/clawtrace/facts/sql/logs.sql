-- Log records that a dialect's events name, as rows that the rules for spans can read: an event's name is its attribute
-- `event.name` (`otel.event.name` where an exporter had no place for the record's own) before the record's own, and where
-- there is none of them the attribute that a dialect says. A record that was delivered twice counts once.
CREATE OR REPLACE TEMP TABLE fact_log_raw AS
WITH named AS (
    SELECT *, coalesce(
               nullif("LogAttributes"['event.name'], ''), nullif("LogAttributes"['otel.event.name'], ''),
               nullif("EventName", ''){event_names}
           ) AS event_name
    FROM otel_logs
    WHERE run_no IN (SELECT run_no FROM fact_runs)
),
records AS (
    SELECT run_no, run_rule, "TraceId", "SpanId", least(time_ns, 9223372036000000000)::BIGINT AS at_ns, arrival_ns,
           event_name AS "SpanName", 'Internal' AS "SpanKind", "ServiceName", "ScopeName", {version} AS version, 'Unset' AS "StatusCode",
           '' AS "StatusMessage", '' AS "ParentSpanId", []::VARCHAR[] AS "Events.Name",
           []::MAP(VARCHAR, VARCHAR)[] AS "Events.Attributes", "ResourceAttributes",
           map_concat("LogAttributes", MAP {{'log.body': coalesce("Body", ''), 'log.event': CASE
               WHEN json_valid("Body") AND json_type("Body") = 'OBJECT'
               THEN json_merge_patch("Body", json_object('event.name', event_name))::VARCHAR
               ELSE json_object('event.name', event_name)::VARCHAR END}}) AS "SpanAttributes",
           dropped_attributes, md5(concat_ws('|', "Body", "LogAttributes"::VARCHAR)) AS content
    FROM named
    WHERE event_name IN ({names})
    QUALIFY row_number() OVER (
        PARTITION BY run_no, "TraceId", "SpanId", time_ns, event_name, "ScopeName", md5(concat_ws('|', "Body", "LogAttributes"::VARCHAR))
        ORDER BY arrival_ns
    ) = 1
)
SELECT row_number() OVER (ORDER BY run_no, at_ns, "SpanName", "TraceId", "SpanId", content) - 1 AS sid,
       {detection} AS dialect, *
FROM records;
