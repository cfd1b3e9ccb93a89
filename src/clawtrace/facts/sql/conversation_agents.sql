-- Agents without a span: one for each conversation, numbered below zero until all rows are numbered again.
INSERT INTO fact_keys BY NAME
SELECT n.sid AS sid, -1 AS row_id, n.run_no AS run_no, u.run_id AS run_id, n.trace_id AS trace_id,
       left(md5(concat_ws('|', n.dialect, n.session_id, 'agent')), 16) AS span_id, n.start_ns AS start_ns, n.end_ns AS end_ns,
       n.agent_name AS name, '' AS scope, 'log' AS source, 0 AS dropped, n.dialect AS dialect
FROM fact_new_agents AS n
JOIN fact_runs AS u ON u.run_no = n.run_no;

INSERT INTO fact_rows BY NAME
SELECT sid, dialect, 'agent' AS kind, agent_name, session_id, {tests}
FROM fact_new_agents;
