#!/usr/bin/env bash
# Writes requirements/*.txt from the ranges in the two pyproject.toml: exact versions with hashes, no addresses.
# Versions that still fit are kept; --upgrade takes the newest.
set -euo pipefail
cd "$(dirname "$0")/.."

environment=.cache/lock
[[ -x $environment/bin/uv ]] || tools/create_venv.sh "$environment"
"$environment/bin/python" -m pip install --quiet --disable-pip-version-check uv==0.13.9

# lock NAME SOURCE...: the source groups of requirements into requirements/NAME.txt
# Extras stay: pip would look for the newest version of a package with extras that is only locked without them.
lock() {
    "$environment/bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
        --no-strip-extras --no-emit-package remora --custom-compile-command "make lock" --output-file "requirements/$1.txt" "${@:2}"
}

lock development pyproject.toml clients/python/pyproject.toml --group dev "${@}"
# The image's: the versions that were tested.
lock build --group build --constraint requirements/development.txt
lock server pyproject.toml clients/python/pyproject.toml --constraint requirements/development.txt
lock deploy --group deploy "${@}"
lock fuzz --group fuzz "${@}"
lock generate --group generate "${@}"
lock benchmarks --group benchmarks "${@}"
lock langgraph clients/python/pyproject.toml --extra langgraph --group langgraph "${@}"
lock nat clients/python/pyproject.toml --extra nat --group nat "${@}"
