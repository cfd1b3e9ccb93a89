-- What the spans of each dialect carry (dialects/compile.py Seen). Spans come in few shapes: the distinct lists of keys
-- are told apart first, and only they are taken to pieces.
WITH shapes AS MATERIALIZED (
    SELECT DISTINCT dialect, map_keys("SpanAttributes") AS span, "Events.Name" AS event, map_keys("ResourceAttributes") AS resource
    FROM fact_raw
)
SELECT DISTINCT dialect, 'any' AS place, '' AS key FROM shapes
UNION ALL
SELECT DISTINCT dialect, 'span', unnest(span) FROM shapes
UNION ALL
SELECT DISTINCT dialect, 'event', unnest(event) FROM shapes
UNION ALL
SELECT DISTINCT dialect, 'resource', unnest(resource) FROM shapes
