#!/usr/bin/env bash
# Runs TypeScript's tests, whose packages Make has installed, and writes the names of those that failed to the file $NAMES.
# test_typescript.sh --if-installed: without Node it says so and passes.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ ${1-} == --if-installed ]] && ! command -v npm >/dev/null; then
    echo "TypeScript's tests are left out: Node is not installed."
    exit
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
export FORCE_COLOR=0
npm test --silent --prefix clients/typescript 2>&1 | tee "$log" | sed '/✔/d; /^▶/d' || {
    sed -n '/failing tests:/,$ s/^✖ /    /p' "$log" >"${NAMES:-/dev/null}"
    exit 1
}
