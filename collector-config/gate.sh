#!/bin/sh
# Announces a run to `clawtrace serve`, runs an agent, ends the run and judges it. Needs curl and sed, and no clawtrace.
#   sh gate.sh READY_FILE CHECKS COMMAND...    such as: sh gate.sh sidecar.json checks.yaml python agent.py
#   COLLECTOR_ENDPOINT   where the agent exports to; where it is not set, clawtrace itself
# Exit codes are those of `clawtrace eval`.
set -eu
ready=$1 checks=$2
shift 2

field() { sed -n "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/p" "$ready"; }
api="$(field http)/clawtrace/v1"
auth="authorization: Bearer $(field token)"

environment=$(curl -sf -X POST -H "$auth" "$api/runs?format=shell" -d '{}')
eval "$environment"
[ -z "${COLLECTOR_ENDPOINT:-}" ] || export OTEL_EXPORTER_OTLP_ENDPOINT="$COLLECTOR_ENDPOINT"

code=0
"$@" || code=$?
curl -sf -o /dev/null -X POST -H "$auth" "$api/runs/$CLAWTRACE_RUN_ID/end" -d "{\"exit_code\": $code}"

headers=$(mktemp)
curl -s -D "$headers" -X POST -H "$auth" "$api/evaluate?format=text&run_id=$CLAWTRACE_RUN_ID" --data-binary @"$checks"
verdict=$(tr -d '\r' <"$headers" | sed -n 's/^x-clawtrace-exit-code: //p')
rm "$headers"
exit "${verdict:-4}"
