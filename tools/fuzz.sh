#!/usr/bin/env bash
# fuzz.sh TARGETS SECONDS: fuzzes each target for that long, from the committed corpus and the one of earlier runs here.
# Inputs that crash a target are kept in fuzz/artifacts; after the fix they belong in fuzz/corpus, which the usual tests replay.
set -euo pipefail
cd "$(dirname "$0")/.."

export PATH="$PWD/.cache/fuzz/bin:$PATH"
failed=()
for target in $1; do
    grown=.cache/fuzz/corpus/$target artifacts=fuzz/artifacts/$target/
    mkdir -p "$grown" "$artifacts"
    options=(-max_total_time="$2" -rss_limit_mb=1024 -malloc_limit_mb=256 -timeout=60 -artifact_prefix="$artifacts" -verbosity=0 -print_final_stats=1)
    if [[ $target == requests ]]; then
        run=(.venv/bin/python fuzz/requests.py "$grown" "fuzz/corpus/$target" -max_len=8192)
    else
        run=(cargo +nightly fuzz run --fuzz-dir fuzz "$target" "$grown" "fuzz/corpus/$target" --)
    fi
    echo "fuzzing $target for $2 s"
    "${run[@]}" "${options[@]}" || failed+=("$target")
done
if ((${#failed[@]})); then
    echo "crashed: ${failed[*]}; the inputs are in fuzz/artifacts" >&2
    exit 1
fi
