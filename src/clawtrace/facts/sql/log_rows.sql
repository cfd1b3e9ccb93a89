-- Rows that log records become, numbered below zero until all rows are numbered again; their ids come of the records.
INSERT INTO fact_keys BY NAME
SELECT n.sid AS sid, -1 AS row_id, r.run_no AS run_no, u.run_id AS run_id, r."TraceId" AS trace_id,
       left(md5(concat_ws('|', r.at_ns, r."TraceId", r."SpanId", r."ScopeName", r."SpanName", f.kind, r.content)), 16) AS span_id,
       CASE WHEN n.received THEN r."SpanId" END AS parent_span_id, n.start_ns AS start_ns, r.at_ns AS end_ns,
       r.arrival_ns AS arrival_ns, r.run_rule AS run_rule, r."SpanName" AS name, r."ServiceName" AS service,
       r."ScopeName" AS scope, r.version AS version, 'log' AS source, r.dropped_attributes AS dropped, r.dialect AS dialect
FROM fact_log_new AS n
JOIN fact_log_raw AS r ON r.sid = n.record
JOIN fact_log_rows AS f ON f.sid = n.record AND f.rule = n.rule
JOIN fact_runs AS u ON u.run_no = r.run_no;

INSERT INTO fact_rows BY NAME
SELECT n.sid AS sid, f.* EXCLUDE (sid, rule)
FROM fact_log_new AS n
JOIN fact_log_rows AS f ON f.sid = n.record AND f.rule = n.rule;
