-- One row for each distinct span of the batch's runs, numbered in the order that every later step relies on.
-- A span that arrived twice counts once: the ended one, of several the one with the most attributes, else the first to arrive. The dialect is found before the
-- windows, so that the wide columns it is found from are not carried through their sorts.
-- An end of zero or beyond what a clock can show is no end.
-- OTLP has no field for a value that the SDK cut: it is one of the longest of its service, of which one is JSON that breaks off, or text of a usual limit.
CREATE OR REPLACE TEMP TABLE fact_keys AS
WITH longest AS MATERIALIZED (
    SELECT run_no, "ServiceName" AS service, max(list_max(list_transform(map_values("SpanAttributes"), lambda v: length(v)))) AS size
    FROM otel_traces
    WHERE run_no IN (SELECT run_no FROM fact_runs)
    GROUP BY ALL
),
narrow AS MATERIALIZED (
    SELECT t.rowid AS row_id,
           t.run_no AS run_no,
           r.run_id AS run_id,
           t."TraceId" AS trace_id,
           t."SpanId" AS span_id,
           nullif(t."ParentSpanId", '') AS parent_span_id,
           least(t.start_ns, 9223372036000000000)::BIGINT AS start_ns,
           CASE WHEN t.end_ns BETWEEN 1 AND 9223372035999999999 THEN t.end_ns::BIGINT END AS end_ns,
           t.arrival_ns AS arrival_ns,
           cardinality(t."SpanAttributes") AS size,
           t.run_rule AS run_rule,
           t."SpanName" AS name,
           t."ServiceName" AS service,
           t."ScopeName" AS scope,
           {version} AS version,
           lower(t."SpanKind") AS span_kind,
           lower(t."StatusCode") AS status,
           t.flags AS flags,
           t."TraceState" AS trace_state,
           CASE WHEN len(t."Links.SpanId") > 0
                THEN list_reduce(list_transform(list_zip(t."Links.TraceId", t."Links.SpanId"), lambda l: l[1] || l[2]), lambda a, b: a || ' ' || b) END AS links,
           -- OpenTelemetry's SDK for Java counts an attribute that is written again as dropped; one is dropped from a full span only.
           CASE WHEN t.dropped_attributes > 0 AND t."ResourceAttributes"['telemetry.sdk.language'] = 'java' AND cardinality(t."SpanAttributes") < 128
                THEN 0 ELSE t.dropped_attributes END
           -- Events for each chunk of a stream, without attributes, say nothing: more of them are no loss.
           + CASE WHEN t.dropped_events > 0 AND len(list_distinct(t."Events.Name")) = 1 AND ends_with(t."Events.Name"[1], '.completion.chunk') AND len(list_filter(t."Events.Attributes", lambda a: cardinality(a) > 0)) = 0
                THEN 0 ELSE t.dropped_events END
           + t.dropped_links
           AS dropped,
           list_filter(map_keys(t."SpanAttributes"), lambda k: length(t."SpanAttributes"[k]) = longest.size) AS longest_ones,
           len(list_filter(map_values(t."SpanAttributes"), lambda v: length(v) = longest.size AND (
                 (starts_with(v, '{{"') OR starts_with(v, '[{{') OR starts_with(v, '["')) AND NOT ends_with(v, ']') AND NOT ends_with(v, '}}') AND NOT json_valid(v)
                 OR longest.size IN (1000, 1024, 2000, 2048, 4096, 8192, 10000, 16384, 32768, 65535, 65536) AND contains(v, ' ') AND NOT json_valid(v)))) AS broken,
           len(list_filter(map_values(t."SpanAttributes"), lambda v: regexp_full_match(v, '{mask}|[0-9a-f]{{64}}') OR (length(v) < 256 AND contains(v, '***')))) > 0 AS masked,
           len(list_filter(t."Events.Attributes", lambda a: list_contains(list_transform(map_values(a), lambda v: length(v)), longest.size))) AS in_events,
           CASE WHEN starts_with(t."ScopeName", 'clawtrace.logs.') THEN 'log' ELSE 'otlp' END AS source,
           {detection} AS dialect
    FROM otel_traces AS t
    JOIN fact_runs AS r ON r.run_no = t.run_no
    JOIN longest ON longest.run_no = t.run_no AND longest.service IS NOT DISTINCT FROM t."ServiceName"
),
distinct_spans AS (
    SELECT * FROM narrow
    {once}
)
SELECT row_number() OVER (
           ORDER BY run_no, start_ns, coalesce(end_ns, 9223372036854775807), trace_id, span_id
       ) - 1 AS sid,
       * EXCLUDE (longest_ones, broken, in_events, size),
       CASE WHEN len(longest_ones) + in_events > 0 AND sum(broken) OVER service > 0
            THEN CASE WHEN len(list_filter(longest_ones, lambda k: NOT regexp_matches(k, 'input|output|message|argument|result|prompt|completion'))) = 0
                      THEN 'words' ELSE 'facts' END END AS shortened
FROM distinct_spans
WINDOW service AS (PARTITION BY run_no, service);

-- What an SDK or a Collector wrote in place of a content says nothing of it: as if it had not been recorded. A Collector may hash it, or mask
-- a part of a name.
CREATE OR REPLACE TEMP VIEW fact_raw AS
SELECT k.sid AS sid, k.dialect AS dialect, t.* REPLACE (
           CASE WHEN k.masked
                THEN map_from_entries(list_filter(map_entries(t."SpanAttributes"), lambda e: NOT (
                    regexp_full_match(e.value, '{mask}') OR (ends_with(e.key, 'name') AND contains(e.value, '***')) OR
                    (regexp_full_match(e.value, '[0-9a-f]{{64}}') AND regexp_matches(e.key, 'name|argument|result|message|content|input|output|prompt')))))
                ELSE t."SpanAttributes" END AS "SpanAttributes",
           regexp_replace(t."SpanName", '^({prefix})', '') AS "SpanName")
FROM fact_keys AS k
JOIN otel_traces AS t ON t.rowid = k.row_id
WHERE t.run_no IN (SELECT run_no FROM fact_runs);
