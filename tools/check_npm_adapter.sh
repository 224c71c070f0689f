#!/usr/bin/env bash
# check_npm_adapter.sh PACKAGE SUITE EXAMPLE: packs @remora/PACKAGE and uses it as users do: installed from the tarball into an
# empty folder, beside what it is for, which Make has installed in .cache/suites/SUITE; as ES modules and as CommonJS, with the
# types of the code in its README and in docs/PACKAGE.md, and with the agent of examples/EXAMPLE.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for package in client "$1"; do
    (cd "clients/typescript/packages/$package" && npm pack --silent --pack-destination "$work" >/dev/null)
done
sed -n '/^```ts$/,/^```$/ { /^```/d; p }' "clients/typescript/packages/$1/README.md" >"$work/readme.mts"
[[ -s $work/readme.mts ]] || { echo "The README has no code." >&2; exit 1; }
# The page has a node of the reader's own.
{
    echo "declare const answer: () => Promise<object>;"
    sed -n '/^```ts$/,/^```$/ { /^```/d; p }' "docs/$1.md"
} >"$work/page.mts"
(($(wc -l <"$work/page.mts") > 1)) || { echo "docs/$1.md has no code." >&2; exit 1; }
cp "examples/$3/agent.mjs" "$work"
tools=$PWD/clients/typescript/node_modules
python=$PWD/.venv/bin/python
peers=$PWD/.cache/suites/$2/node_modules
model=${REMORA_MODEL_DIR:-$PWD/.cache/model}

cd "$work"
echo '{ "private": true }' >package.json
npm install --silent --omit=peer ./*.tgz
(cd "$peers" && ls -d -- [!@.]* @*/*) | while read -r name; do
    mkdir -p "node_modules/$(dirname "$name")"
    [[ -e node_modules/$name ]] || ln -s "$peers/$name" "node_modules/$name"
done
echo "import * as esm from '@remora/$1'; if (Object.keys(esm).length === 0) throw new Error('empty');" >esm.mjs
echo "if (Object.keys(require('@remora/$1')).length === 0) throw new Error('empty');" >cjs.cjs
"$tools/.bin/tsc" --strict --skipLibCheck --noEmit --target es2022 --module nodenext --typeRoots "$tools/@types" --types node readme.mts page.mts
NODE_ENV=production "$python" - "$model" esm.mjs cjs.cjs agent.mjs agent.mjs <<'END'
import os, subprocess, sys

from remora import testing

with testing.serve("--model-dir", sys.argv[1]) as endpoint:
    for script in sys.argv[2:]:
        subprocess.run(["node", script], check=True, env={**os.environ, "REMORA_ENDPOINT": endpoint})
END
