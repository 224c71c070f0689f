#!/usr/bin/env bash
# build_container.sh TAG [OPTION...]: builds the image with docker, or with buildah where no docker answers.
# BUILDER=docker or BUILDER=buildah chooses. `--target without-model` makes the one without the embedding model.
set -euo pipefail
cd "$(dirname "$0")/.."

tag=$1
revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
options=(--build-arg "VERSION=$version" --build-arg "REVISION=$revision" --tag "$tag" "${@:2}")

if [[ -z ${BUILDER:-} ]]; then
    BUILDER=buildah
    ! docker info >/dev/null 2>&1 || BUILDER=docker
    if [[ $BUILDER == buildah ]] && ! command -v buildah >/dev/null; then
        echo "No docker answers (\`docker info\` says why), and buildah is not installed." >&2
        exit 1
    fi
fi
case $BUILDER in
    docker) docker build "${options[@]}" . ;;
    # In docker's format: OCI's has no HEALTHCHECK. The variables hold options, each several.
    # shellcheck disable=SC2086
    buildah) buildah ${BUILDAH_OPTIONS:-} build ${BUILD_OPTIONS:-} --format docker "${options[@]}" . ;;
esac
