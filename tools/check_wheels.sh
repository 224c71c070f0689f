#!/usr/bin/env bash
# Builds both wheels and uses them as users do: in a fresh environment, outside of the tree, without Rust.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tools/build_wheels.sh "$work/dist"

# The versions that were tested, as constraints: without hashes, which pip would require of our wheels, too.
sed -n 's/^\([A-Za-z0-9_.-]*\)\(\[[^]]*]\)*\(==[^ ]*\).*/\1\3/p' requirements/development.txt >"$work/constraints.txt"
PYTHON=.venv/bin/python tools/create_venv.sh "$work/venv"
"$work/venv/bin/python" -m pip --disable-pip-version-check install --quiet --constraint "$work/constraints.txt" "$work"/dist/*.whl
"$work/venv/bin/python" -m pip --disable-pip-version-check check

cp tools/use_wheels.py "$work"
cd "$work"
env -i PATH="$work/venv/bin:/usr/bin:/bin" HOME="$work" "$work/venv/bin/python" -I use_wheels.py
