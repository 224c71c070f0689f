#!/usr/bin/env bash
# Builds the image without a container engine and runs the demonstration's client against it. Needs root on Debian or
# Ubuntu with buildah and debootstrap.
#
# Stand-ins take the place of the base images that the Dockerfile names: Debian with its own Python, and this machine's
# Rust. The image runs as an engine would run it: its own user, a read-only root file system, its own environment; only
# the demonstration's directory is written.
set -euo pipefail
cd "$(dirname "$0")/.."

for tool in buildah debootstrap cargo; do
    command -v "$tool" >/dev/null || { echo "make container-test needs $tool." >&2; exit 1; }
done
[[ $EUID == 0 ]] || { echo "make container-test needs root." >&2; exit 1; }

work=$PWD/.cache/container
mkdir -p "$work"
export BUILDAH_OPTIONS="--root $work/store --runroot $work/run --storage-driver vfs"
# shellcheck disable=SC2086 # it holds several options
buildah() { command buildah $BUILDAH_OPTIONS "$@"; }

# base ARGUMENT: the image that the Dockerfile takes for an argument.
base() { sed -n "s/^ARG $1=/docker.io\/library\//p" Dockerfile; }

# stand_in IMAGE FOLDER: an image of the files in a folder, unless there is one.
stand_in() {
    buildah inspect --type image "$1" >/dev/null 2>&1 && return
    local container
    container=$(buildah from scratch)
    buildah copy --quiet "$container" "$2" / >/dev/null
    buildah commit --quiet "$container" "$1" >/dev/null
    buildah rm "$container" >/dev/null
}

# The links are looked for, made last: what they lead to is in the image alone.
if [[ ! -L $work/debian/usr/local/bin/python3 ]]; then
    rm -rf "$work/debian"
    debootstrap --variant=minbase --include=ca-certificates,python3,python3-venv,python3-pip bookworm "$work/debian" \
        >"$work/debootstrap.log"
    ln -s /usr/bin/python3 "$work/debian/usr/local/bin/python3"
fi
if [[ ! -L $work/rust/usr/local/cargo/bin/rustc ]]; then
    rm -rf "$work/rust"
    mkdir -p "$work/rust/usr/local/rustup" "$work/rust/usr/local/cargo/bin"
    tar -C "$(rustc --print sysroot)" --exclude=share/doc -cf - . | tar -C "$work/rust/usr/local/rustup" -xf -
    for program in cargo rustc; do
        ln -s "/usr/local/rustup/bin/$program" "$work/rust/usr/local/cargo/bin/$program"
    done
fi
stand_in "$(base PYTHON)" "$work/debian"
stand_in "$(base RUST)" "$work/rust"

# What this machine trusts, the build trusts, too.
export BUILD_OPTIONS="--isolation chroot --pull-never --volume /etc/ssl/certs:/etc/ssl/certs:ro"
BUILDER=buildah tools/build_container.sh remora:test
rm -rf "$work/pushed"
mkdir "$work/pushed"
buildah push --quiet --format v2s2 remora:test "dir:$work/pushed/image"
buildah push --quiet --format v2s2 "$(base PYTHON)" "dir:$work/pushed/base"
.venv/bin/python tools/size_of_image.py "$work/pushed/image" "$work/pushed/base"

container=$(buildah from --pull-never remora:test)
root=$(buildah mount "$container")
trap 'buildah rm "$container" >/dev/null; rm -rf "${WRITABLE:-}"' EXIT
field() { buildah inspect --type image --format "$1" remora:test; }
field '{{range .OCIv1.Config.Env}}{{println .}}{{end}}' | sed '/^$/d' >"$work/environment"

export IMAGE_ROOT=$root IMAGE_USER IMAGE_ENTRYPOINT IMAGE_ENVIRONMENT=$work/environment WRITABLE
IMAGE_USER=$(field '{{.OCIv1.Config.User}}')
IMAGE_ENTRYPOINT=$(field '{{index .OCIv1.Config.Entrypoint 0}}')
WRITABLE=$(mktemp --directory /tmp/remora-container-XXXXXX)
chown "$IMAGE_USER" "$WRITABLE"

tools/run_in_image.sh version
# With the image's Python. The program is not in the image.
IMAGE_ENTRYPOINT=$(dirname "$IMAGE_ENTRYPOINT")/python tools/run_in_image.sh -c "$(cat tools/time_in_image.py)" "$WRITABLE"
TMPDIR=$WRITABLE .venv/bin/python demo/demo.py --remora tools/run_in_image.sh
