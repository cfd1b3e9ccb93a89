-- The relation `attributes` straight from the raw rows: only an assertion that asks for raw attributes pays for it.
CREATE VIEW attributes AS
WITH pairs AS (
    SELECT run_no, "SpanId" AS span_id, 'span' AS scope, attribute_types AS letters,
           unnest(map_keys("SpanAttributes")) AS key, unnest(map_values("SpanAttributes")) AS value,
           unnest(range(1, cardinality("SpanAttributes")::BIGINT + 1)) AS position
    FROM otel_traces
    UNION ALL
    SELECT run_no, "SpanId", 'resource', resource_types,
           unnest(map_keys("ResourceAttributes")), unnest(map_values("ResourceAttributes")),
           unnest(range(1, cardinality("ResourceAttributes")::BIGINT + 1))
    FROM otel_traces
    UNION ALL
    SELECT run_no, "SpanId", 'scope', NULL, unnest(map_keys(scope_attributes)), unnest(map_values(scope_attributes)), NULL
    FROM otel_traces
    UNION ALL
    SELECT run_no, "SpanId", 'scope', NULL, NULL, NULL, NULL FROM otel_traces WHERE scope_attributes IS NULL
    UNION ALL
    SELECT run_no, span_id, 'event', NULL,
           unnest(map_keys(event)), unnest(map_values(event)), unnest(range(1, cardinality(event)::BIGINT + 1))
    FROM (SELECT run_no, "SpanId" AS span_id, unnest("Events.Attributes") AS event FROM otel_traces)
    UNION ALL
    SELECT run_no, "SpanId", 'event_name', NULL, 'name', unnest("Events.Name"), NULL FROM otel_traces
    UNION ALL
    SELECT run_no, "SpanId", 'link', NULL, 'trace_id', unnest("Links.TraceId"), NULL FROM otel_traces
    UNION ALL
    SELECT run_no, "SpanId", 'link', NULL, 'span_id', unnest("Links.SpanId"), NULL FROM otel_traces
    UNION ALL
    SELECT run_no, span_id, 'link', NULL, unnest(map_keys(link)), unnest(map_values(link)), NULL
    FROM (SELECT run_no, "SpanId" AS span_id, unnest("Links.Attributes") AS link FROM otel_traces)
)
SELECT n.run_id AS run_id, p.span_id AS span_id, p.scope AS scope, p.key AS key, p.value AS value,
       CASE substr(p.letters, p.position, 1)
           WHEN 's' THEN 'string' WHEN 'i' THEN 'int' WHEN 'd' THEN 'double' WHEN 'b' THEN 'bool'
           WHEN 'a' THEN 'array' WHEN 'm' THEN 'map' WHEN 'y' THEN 'bytes'
       END AS type
FROM pairs AS p
JOIN run_numbers AS n ON n.run_no = p.run_no;
