#!/usr/bin/env bash
# Runs TypeScript's tests, whose packages Make has installed, and writes the names of those that failed to the file $NAMES.
# test_typescript.sh --if-installed: without Node 20.10 or later it says so and passes.
set -euo pipefail
cd "$(dirname "$0")/.."

recent='const [major, minor] = process.versions.node.split(".").map(Number); process.exit(major * 100 + minor < 2010 ? 1 : 0)'
if [[ ${1-} == --if-installed ]] && ! { command -v npm && node -e "$recent"; } >/dev/null 2>&1; then
    echo "TypeScript's tests are left out: Node 20.10 or later, with npm, is not installed."
    exit
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
export FORCE_COLOR=0
npm test --silent --prefix clients/typescript 2>&1 | tee "$log" | sed '/✔/d; /^▶/d' || {
    sed -n '/failing tests:/,$ s/^✖ /    /p' "$log" >"${NAMES:-/dev/null}"
    exit 1
}
