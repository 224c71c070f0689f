#!/usr/bin/env bash
# run_parts.sh NAME COMMAND [NAME COMMAND]...: runs all commands, even if some fail, and shows in the end how each ended, with
# what a failed command wrote to the file $NAMES. Fails if one failed.
set -uo pipefail
cd "$(dirname "$0")/.."

NAMES=$(mktemp)
export NAMES
trap 'rm -f "$NAMES"' EXIT
trap 'exit 130' INT

results=() failed=0
while (($#)); do
    : >"$NAMES"
    began=$SECONDS
    if bash -euo pipefail -c "$2"; then
        results+=("passed  $1, in $((SECONDS - began)) s")
    else
        failed=1
        results+=("FAILED  $1, in $((SECONDS - began)) s")
        [[ ! -s $NAMES ]] || results+=("$(cat "$NAMES")")
    fi
    shift 2
done
printf '%s\n' "" "${results[@]}"
exit "$failed"
