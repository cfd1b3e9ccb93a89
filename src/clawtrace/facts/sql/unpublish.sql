-- Take back the facts of those runs of the batch that have any.
DELETE FROM spans WHERE run_id IN (SELECT run_id FROM fact_runs);
DELETE FROM llm_calls WHERE run_id IN (SELECT run_id FROM fact_runs);
DELETE FROM tool_calls WHERE run_id IN (SELECT run_id FROM fact_runs);
DELETE FROM commands WHERE run_id IN (SELECT run_id FROM fact_runs);
DELETE FROM agents WHERE run_id IN (SELECT run_id FROM fact_runs);
DELETE FROM messages WHERE run_id IN (SELECT run_id FROM fact_runs);
DELETE FROM errors WHERE run_id IN (SELECT run_id FROM fact_runs);
DELETE FROM run_totals WHERE run_id IN (SELECT run_id FROM fact_runs);
DELETE FROM run_tools WHERE run_id IN (SELECT run_id FROM fact_runs);
DELETE FROM doubts WHERE run_id IN (SELECT run_id FROM fact_runs);
DELETE FROM gaps WHERE run_id IN (SELECT run_id FROM fact_runs);
DELETE FROM tool_requests WHERE run_id IN (SELECT run_id FROM fact_runs);
DELETE FROM background_tool_calls WHERE run_id IN (SELECT run_id FROM fact_runs);
DELETE FROM background_commands WHERE run_id IN (SELECT run_id FROM fact_runs);
DELETE FROM runs WHERE run_id IN (SELECT run_id FROM fact_runs);
DELETE FROM fact_state WHERE run_id IN (SELECT run_id FROM fact_runs);
