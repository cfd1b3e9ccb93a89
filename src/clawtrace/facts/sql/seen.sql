-- What the spans of the batch carry (dialects/compile.py Seen). They come in few shapes, which are distinguished here.
SELECT DISTINCT map_keys(t."SpanAttributes"), t."Events.Name", map_keys(t."ResourceAttributes"), t."ScopeName", t."ServiceName"
FROM otel_traces AS t
WHERE t.run_no IN (SELECT run_no FROM fact_runs)
