#!/usr/bin/env bash
# run_parts.sh [--together] NAME COMMAND [NAME COMMAND]...: runs all commands, even if some fail, and shows in the end how each
# ended, with what a failed command wrote to the file $NAMES. Fails if one failed.
# One after the other, or with --together all at once: each line of output then begins with the name of its part.
set -uo pipefail
cd "$(dirname "$0")/.."

together=0
[[ ${1-} != --together ]] || { together=1 && shift; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# run NUMBER NAME COMMAND: the outcome is in the file NUMBER.
run() {
    local began=$SECONDS outcome=FAILED
    NAMES=$folder/$1.names bash -euo pipefail -c "$3" && outcome=passed
    printf '%s  %s, in %d s\n' "$outcome" "$2" $((SECONDS - began)) >"$folder/$1"
    [[ $outcome == passed || ! -s $folder/$1.names ]] || cat "$folder/$1.names" >>"$folder/$1"
}

if ((together)); then
    # Each part in a process group of its own, which an interrupt reaches: what runs in the background would ignore it.
    set -m
    groups=()
    trap 'for group in "${groups[@]}"; do kill -INT -- "-$group" 2>/dev/null; done; wait; exit 130' INT TERM
else
    trap 'exit 130' INT
fi
count=0
while (($#)); do
    count=$((count + 1))
    if ((together)); then
        { run "$count" "$1" "$2" 2>&1 | (trap '' INT && sed --unbuffered "s/^/$1: /"); } &
        groups+=($!)
    else
        run "$count" "$1" "$2"
    fi
    shift 2
done
wait

echo
failed=0
for ((number = 1; number <= count; number++)); do
    cat "$folder/$number" || exit 1
    read -r outcome _ <"$folder/$number"
    [[ $outcome == passed ]] || failed=1
done
exit "$failed"
