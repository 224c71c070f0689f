#!/usr/bin/env bash
# run_in_image.sh ARGUMENT...: runs an image's entrypoint as a container engine would, in this very process: in the image's
# root file system, read-only, as its user and with its environment. tools/test_container.sh sets IMAGE_ROOT, IMAGE_USER,
# IMAGE_ENTRYPOINT, IMAGE_ENVIRONMENT (a file), and WRITABLE, a directory that has the same name inside.
set -euo pipefail

if [[ ${1:-} != --in-its-own-mounts ]]; then
    exec unshare --mount --propagation private "$0" --in-its-own-mounts "$@"
fi
shift
# What the caller made in the directory belongs to the image's user.
chown --recursive "$IMAGE_USER" "$WRITABLE"
mount --bind "$IMAGE_ROOT" "$IMAGE_ROOT"
mount --rbind /dev "$IMAGE_ROOT/dev"
mount --bind /proc "$IMAGE_ROOT/proc"
mount -t tmpfs -o mode=0755 tmpfs "$IMAGE_ROOT/tmp"
mkdir -p "$IMAGE_ROOT$WRITABLE"
mount --bind "$WRITABLE" "$IMAGE_ROOT$WRITABLE"
mount -o remount,bind,ro "$IMAGE_ROOT/tmp"
mount -o remount,bind,ro "$IMAGE_ROOT"
mapfile -t environment <"$IMAGE_ENVIRONMENT"
exec chroot --userspec="$IMAGE_USER" --groups="" "$IMAGE_ROOT" \
    /usr/bin/env --ignore-environment "${environment[@]}" "$IMAGE_ENTRYPOINT" "$@"
