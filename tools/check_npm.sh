#!/usr/bin/env bash
# Packs the TypeScript client and uses it as users do: installed from the tarball into an empty folder, as ES modules and as
# CommonJS, with its types.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
npm pack --silent --workspace @remora/client --prefix clients/typescript --pack-destination "$work"

cp tools/use_npm.ts "$work/use.mts"
cp tools/use_npm.ts "$work/use.cts"
tools=$PWD/clients/typescript/node_modules
python=$PWD/.venv/bin/python
cd "$work"
echo '{ "private": true }' >package.json
npm install --silent ./*.tgz
"$tools/.bin/tsc" --strict --module nodenext --target es2022 --typeRoots "$tools/@types" --types node use.mts use.cts
"$python" - node use.mjs -- node use.cjs <<'END'
import os, subprocess, sys
from itertools import groupby

from remora import testing

with testing.serve() as endpoint:
    for is_command, words in groupby(sys.argv[1:], lambda word: word != "--"):
        if is_command:
            subprocess.run(list(words), check=True, env={**os.environ, "REMORA_ENDPOINT": endpoint})
END
