#!/usr/bin/env bash
# build_wheels.sh DIRECTORY: builds the wheels of the server, for this platform, and of the client into DIRECTORY.
set -euo pipefail
cd "$(dirname "$0")/.."

python=.venv/bin/python
rm -f "$1"/remora-*.whl "$1"/remora_server-*.whl
PATH="$PWD/.venv/bin:$PATH" "$python" -m pip --disable-pip-version-check wheel --quiet --no-deps --no-build-isolation \
    --wheel-dir "$1" . ./clients/python
ls "$1"/remora-*.whl "$1"/remora_server-*.whl
