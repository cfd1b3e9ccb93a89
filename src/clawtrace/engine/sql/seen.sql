-- What the spans of each dialect carry (dialects/compile.py Seen).
SELECT DISTINCT dialect, 'any' AS place, '' AS key FROM fact_keys
UNION ALL
SELECT DISTINCT dialect, 'span', unnest(map_keys("SpanAttributes")) FROM fact_raw
UNION ALL
SELECT DISTINCT dialect, 'event', unnest("Events.Name") FROM fact_raw
UNION ALL
SELECT DISTINCT dialect, 'resource', unnest(map_keys("ResourceAttributes")) FROM fact_raw
