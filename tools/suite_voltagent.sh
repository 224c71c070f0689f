#!/usr/bin/env bash
# Checks and tests @remora/voltagent with the packages that it is for, which Make has installed in .cache/suites/voltagent.
# suite_voltagent.sh [TEST.test.ts]...: only these tests.
set -euo pipefail
cd "$(dirname "$0")/.."

tools/prepare_typescript.sh voltagent voltagent
(
    cd clients/typescript/packages/voltagent
    npm run --silent types
    npm run --silent build
    # Otherwise @voltagent/core asks the network for a list of models.
    NODE_ENV=production npm test --silent -- "$@"
)
(($# > 0)) || tools/check_npm_adapter.sh voltagent voltagent voltagent
