#!/usr/bin/env bash
# build_wheels.sh DIRECTORY [OPTION...]: builds the wheels of the server, for this platform, and of the client.
# Options are for maturin. A release passes `--zig --compatibility manylinux_2_17`, with ziglang installed, for glibc 2.17.
set -euo pipefail
cd "$(dirname "$0")/.."

# jemalloc has the page size of the machine that builds it, or 4 KiB if it is built for another, and runs where pages are as large
# or smaller. Arm has up to 64 KiB.
case "$(uname -m) $*" in *aarch64*) export JEMALLOC_SYS_WITH_LG_PAGE=16 ;; esac

output=$1
rm -f "$output"/remora-*.whl "$output"/remora_server-*.whl
.venv/bin/maturin build --quiet --release --interpreter .venv/bin/python --out "$output" "${@:2}"
.venv/bin/python -m pip --disable-pip-version-check wheel --quiet --no-deps --no-build-isolation --wheel-dir "$output" \
    ./clients/python
ls "$output"/remora-*.whl "$output"/remora_server-*.whl
