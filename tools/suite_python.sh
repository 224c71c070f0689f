#!/usr/bin/env bash
# suite_python.sh FRAMEWORK [PYTEST ARGUMENT]...: checks and tests remora.FRAMEWORK with the packages that it is for, which Make
# has installed in .cache/suites/FRAMEWORK. The server that it talks to runs in .venv, without them.
set -euo pipefail
cd "$(dirname "$0")/.."

framework=$1
shift
python="$PWD/.cache/suites/$framework/bin/python"
# The client of this directory, even if the environment was made for another one.
export PYTHONPATH="$PWD/clients/python:$PWD"
"$python" -m mypy --config-file tests/suites/mypy.ini "clients/python/remora/$framework" "tests/suites/$framework"
"$python" -m pytest -c tests/suites/pytest.ini --rootdir . --confcutdir tests/suites --quiet "tests/suites/$framework" "$@"
