#!/usr/bin/env bash
# Runs all of Rust's tests and writes the names of those that failed to the file $NAMES.
set -euo pipefail
cd "$(dirname "$0")/.."

log=$(mktemp)
trap 'rm -f "$log"' EXIT
[[ ! -t 1 ]] || export CARGO_TERM_COLOR=always
"${CARGO:-cargo}" test --workspace --quiet --no-fail-fast 2>&1 | tee "$log" || {
    # Each program with failures ends with a list of their names.
    awk '/^failures:$/ { names = "" } /^    [^ ]/ { names = names $0 "\n" } /^test result: FAILED/ { printf "%s", names }' \
        "$log" >"${NAMES:-/dev/null}"
    exit 1
}
