-- What the log records of each dialect carry (dialects/compile.py Seen), and of which names they are.
SELECT DISTINCT dialect, 'name' AS place, "SpanName" AS key FROM fact_log_raw WHERE dialect IS NOT NULL
UNION ALL
SELECT DISTINCT dialect, 'span', unnest(map_keys("SpanAttributes")) FROM fact_log_raw WHERE dialect IS NOT NULL
UNION ALL
SELECT DISTINCT dialect, 'resource', unnest(map_keys("ResourceAttributes")) FROM fact_log_raw WHERE dialect IS NOT NULL
