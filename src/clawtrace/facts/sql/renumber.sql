-- All rows of the batch in the order that every later step relies on, after some were added.
CREATE OR REPLACE TEMP TABLE fact_numbers AS
SELECT sid AS old, row_number() OVER (
           ORDER BY run_no, start_ns, coalesce(end_ns, 9223372036854775807), trace_id, span_id
       ) - 1 AS sid
FROM fact_keys;
UPDATE fact_keys SET sid = n.sid FROM fact_numbers AS n WHERE fact_keys.sid = n.old;
UPDATE fact_rows SET sid = n.sid FROM fact_numbers AS n WHERE fact_rows.sid = n.old;
