-- One row for each distinct span of the batch's runs, numbered in the order that every later step relies on.
-- A span that arrived twice counts once: the ended one, else the first to arrive.
CREATE OR REPLACE TEMP TABLE fact_keys AS
SELECT row_number() OVER (
           ORDER BY t.run_no, t.start_ns, CASE WHEN t.end_ns = 0 THEN 1 ELSE 0 END, t.end_ns, t."TraceId", t."SpanId"
       ) - 1 AS sid,
       t.rowid AS row_id,
       t.run_no AS run_no,
       r.run_id AS run_id,
       t."TraceId" AS trace_id,
       t."SpanId" AS span_id,
       nullif(t."ParentSpanId", '') AS parent_span_id,
       least(t.start_ns, 9223372036854775807)::BIGINT AS start_ns,
       CASE WHEN t.end_ns > 0 THEN least(t.end_ns, 9223372036854775807)::BIGINT END AS end_ns,
       {detection} AS dialect
FROM otel_traces AS t
JOIN fact_runs AS r ON r.run_no = t.run_no
QUALIFY row_number() OVER (
    PARTITION BY t.run_no, t."TraceId", t."SpanId"
    ORDER BY CASE WHEN t.end_ns = 0 THEN 1 ELSE 0 END, t.arrival_ns, t.request_no, t.rowid
) = 1;

CREATE OR REPLACE TEMP VIEW fact_raw AS
SELECT k.sid AS sid, k.dialect AS dialect, t.*
FROM fact_keys AS k
JOIN otel_traces AS t ON t.rowid = k.row_id
WHERE t.run_no IN (SELECT run_no FROM fact_runs);
