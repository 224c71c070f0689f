#!/usr/bin/env bash
# create_venv.sh DIRECTORY: makes a virtual environment with the first Python found that is 3.11 or later, or with PYTHON.
set -euo pipefail

recent() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

for python in ${PYTHON:-python3.11 python3.12 python3.13 python3.14 python3}; do
    if recent "$python"; then
        exec "$python" -m venv --clear "$1"
    fi
done
echo "Python 3.11 or later was not found: set PYTHON to its path." >&2
exit 1
