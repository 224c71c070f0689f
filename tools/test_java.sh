#!/usr/bin/env bash
# Runs Java's tests against the server of this clone, and writes the names of those that failed to the file $NAMES.
# test_java.sh --if-installed: without a JDK and Maven it says so and passes.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ ${1-} == --if-installed ]] && ! { command -v mvn && command -v javac; } >/dev/null; then
    echo "Java's tests are left out: Maven or a JDK is not installed."
    exit
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
mvn --batch-mode --no-transfer-progress --file clients/java/pom.xml test 2>&1 | tee "$log" | grep -E '^\[(ERROR|WARNING)|Tests run:' || {
    sed -n 's/^\[ERROR\] *\([A-Za-z]*Test\.[^:]*\).*/    \1/p' "$log" | sort -u >"${NAMES:-/dev/null}"
    exit 1
}
