-- What each span alone shows. Input tokens include cached ones and output tokens include reasoning (span-model.md §4): a
-- dialect says when its instrumentation leaves them out. More cached than input tokens proves it against the dialect,
-- and so does a recorded total that is the sum with them; a total that is the sum without reasoning proves the contrary.
CREATE OR REPLACE TEMP TABLE fact_rows AS
SELECT r.* REPLACE (
           coalesce(alias.name, lower(r.provider)) AS provider,
           CASE WHEN r.excludes_cache OR r.cache_proved
                THEN r.input_tokens + coalesce(r.cache_read_tokens, 0) + coalesce(r.cache_write_tokens, 0)
                ELSE r.input_tokens END AS input_tokens,
           CASE WHEN (r.excludes_reasoning AND r.total_tokens IS DISTINCT FROM r.input_tokens + r.output_tokens)
                  OR (r.total_tokens > r.input_tokens + r.output_tokens
                      AND r.total_tokens = r.input_tokens + r.output_tokens + coalesce(r.reasoning_tokens, 0))
                THEN r.output_tokens + coalesce(r.reasoning_tokens, 0)
                ELSE r.output_tokens END AS output_tokens,
           CASE WHEN r.excludes_cache OR r.rollup_cache_proved
                THEN r.rollup_input_tokens + coalesce(r.rollup_cache_read_tokens, 0) + coalesce(r.rollup_cache_write_tokens, 0)
                ELSE r.rollup_input_tokens END AS rollup_input_tokens,
           CASE WHEN r.finish_reason LIKE '[%' AND json_valid(r.finish_reason)
                THEN json_extract_string(r.finish_reason, '$[0]') ELSE r.finish_reason END AS finish_reason),
       CASE WHEN r.failed OR (r.kind = 'tool' AND r.tool_failed)
            THEN coalesce(r.error_message, r.error_type, 'error') END AS error
FROM (
    SELECT *,
           coalesce(cache_read_tokens, 0) + coalesce(cache_write_tokens, 0) > input_tokens
             OR (total_tokens > input_tokens + output_tokens AND total_tokens = input_tokens + output_tokens
                 + coalesce(cache_read_tokens, 0) + coalesce(cache_write_tokens, 0)) AS cache_proved,
           coalesce(rollup_cache_read_tokens, 0) + coalesce(rollup_cache_write_tokens, 0) > rollup_input_tokens
             OR (total_tokens > rollup_input_tokens + rollup_output_tokens
                 AND total_tokens = rollup_input_tokens + rollup_output_tokens + coalesce(rollup_cache_read_tokens, 0)
                 + coalesce(rollup_cache_write_tokens, 0)) AS rollup_cache_proved
    FROM (
{body}
    )
) AS r
LEFT JOIN provider_names AS alias ON alias.alias = lower(r.provider);
