#!/usr/bin/env bash
# prepare_typescript.sh PACKAGE SUITE: gives @remora/PACKAGE what it needs: the built client, and the packages that Make has
# installed in .cache/suites/SUITE.
set -euo pipefail
cd "$(dirname "$0")/../clients/typescript"

[[ node_modules/.package-lock.json -nt package-lock.json ]] || npm ci --loglevel=error
(cd packages/client && npm run --silent build)
ln -sfn "../../../../.cache/suites/$2/node_modules" "packages/$1/node_modules"
