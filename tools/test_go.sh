#!/usr/bin/env bash
# Runs Go's tests against the server of this clone, and writes the names of those that failed to the file $NAMES.
# test_go.sh --if-installed: without Go it says so and passes.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ ${1-} == --if-installed ]] && ! command -v go >/dev/null; then
    echo "Go's tests are left out: Go is not installed."
    exit
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
# What they test is not only Go's code: no result is kept.
go -C clients/go test -count=1 -timeout 30m ./... 2>&1 | tee "$log" | sed '/no test files/d; /^go: downloading/d' || {
    sed -n 's/^ *--- FAIL: /    /p' "$log" >"${NAMES:-/dev/null}"
    exit 1
}
