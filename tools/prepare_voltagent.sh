#!/usr/bin/env bash
# Gives @remora/voltagent what it needs: the built client, and the packages that Make has installed in .cache/suites/voltagent.
set -euo pipefail
cd "$(dirname "$0")/../clients/typescript"

[[ node_modules/.package-lock.json -nt package-lock.json ]] || npm ci --loglevel=error
(cd packages/client && npm run --silent build)
ln -sfn ../../../../.cache/suites/voltagent/node_modules packages/voltagent/node_modules
