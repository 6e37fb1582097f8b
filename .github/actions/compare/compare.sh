#!/usr/bin/env bash
# Runs `latpcap compare` for the action beside this file: BEFORE, AFTER and FAIL_ON (a rule a line) come by the
# environment. The comparison goes into the log and the job's summary. Ends with latpcap's exit code: 1 where a rule
# fails, 2 for a wrong rule, 3 for a capture that cannot be read.
set -euo pipefail

rules=()
while IFS= read -r rule; do
  rule="${rule#"${rule%%[![:space:]]*}"}"
  rule="${rule%"${rule##*[![:space:]]}"}"
  if [ -n "$rule" ]; then rules+=(--fail-on "$rule"); fi
done <<<"${FAIL_ON:-}"

status=0
said=$(latpcap compare "$BEFORE" "$AFTER" ${rules[@]+"${rules[@]}"} 2>&1) || status=$?
printf '%s\n' "$said"

result=passed
if ((status)); then result=failed; fi
if [ -n "${GITHUB_OUTPUT:-}" ]; then printf 'result=%s\n' "$result" >>"$GITHUB_OUTPUT"; fi
if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then
  # indented, not fenced: a file's name cannot end the block
  { printf '### latpcap compare: %s\n\n' "$result"; sed 's/^/    /' <<<"$said"; } >>"$GITHUB_STEP_SUMMARY"
fi
exit "$status"
