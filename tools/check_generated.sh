#!/usr/bin/env bash
# Fails if the generated code in the tree is not what the .proto files give now.
set -euo pipefail
cd "$(dirname "$0")/.."

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
tools/generate.sh "$fresh"

while read -r directory; do
    [[ -n $(find "$fresh/$directory" -type f) ]] || { echo "Nothing was generated into $directory." >&2; exit 1; }
    diff --recursive --brief --exclude '__init__.py*' --exclude __pycache__ "$fresh/$directory" "$directory" || {
        echo "$directory is out of date: run make gen." >&2
        exit 1
    }
done < <(tools/generate.sh --list)
