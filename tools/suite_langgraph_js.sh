#!/usr/bin/env bash
# Checks and tests @remora/langgraph with the packages that it is for, which Make has installed in .cache/suites/langgraph-js:
# with tests of its own, and with LangGraph's of checkpointers.
# suite_langgraph_js.sh [TEST.test.ts]...: only these tests.
set -euo pipefail
cd "$(dirname "$0")/.."

tools/prepare_typescript.sh langgraph langgraph-js
(
    cd clients/typescript/packages/langgraph
    npm run --silent types
    npm run --silent build
    npm test --silent -- "$@"
    (($# > 0)) || npm run --silent validate
)
(($# > 0)) || tools/check_npm_adapter.sh langgraph langgraph-js langgraph-js
