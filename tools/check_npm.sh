#!/usr/bin/env bash
# Packs the TypeScript client and uses it as users do: installed from the tarball into an empty folder, as ES modules and as
# CommonJS, with its types by all ways to resolve them; and the code of its README.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
npm pack --silent --workspace @remora/client --prefix clients/typescript --pack-destination "$work"

cp tools/use_npm.ts "$work/use.mts"
cp tools/use_npm.ts "$work/use.cts"
sed -n '/^```ts$/,/^```$/ { /^```/d; p }' clients/typescript/packages/client/README.md >"$work/readme.mts"
[[ -s $work/readme.mts ]] || { echo "The README has no code." >&2; exit 1; }
tools=$PWD/clients/typescript/node_modules
python=$PWD/.venv/bin/python
cd "$work"
echo '{ "private": true }' >package.json
npm install --silent ./*.tgz
options=(--strict --target es2022 --typeRoots "$tools/@types" --types node)
"$tools/.bin/tsc" "${options[@]}" --module nodenext ./*.mts ./*.cts
cp use.cts use.ts
"$tools/.bin/tsc" "${options[@]}" --noEmit --module esnext --moduleResolution bundler use.ts
"$tools/.bin/tsc" "${options[@]}" --noEmit --module commonjs --moduleResolution node10 use.ts
"$python" - use.mjs use.cjs readme.mjs <<'END'
import os, subprocess, sys

from remora import testing

with testing.serve() as endpoint:
    for script in sys.argv[1:]:
        subprocess.run(["node", script], check=True, env={**os.environ, "REMORA_ENDPOINT": endpoint})
END
