#!/usr/bin/env bash
# Writes deploy/kubernetes from the charts in deploy/helm; --check says whether they are up to date, and lints the charts
# first. Needs helm.
set -euo pipefail
cd "$(dirname "$0")/.."

# What helm takes a cluster for that it does not ask.
KUBERNETES=1.33.0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r deploy/helm/remora deploy/helm/agent "$work"
helm dependency update --skip-refresh "$work/agent" >/dev/null
mkdir "$work/kubernetes"

# write NAME VALUE...: the example's objects with these values.
write() {
    {
        echo "# Written by tools/write_kubernetes.sh from deploy/helm. Do not edit."
        helm template memory "$work/agent" --kube-version "$KUBERNETES" --set "$(IFS=,; echo "${*:2}")" | sed '/^# Source: /d'
    } >"$work/kubernetes/$1.yaml"
}

write sidecar persistence.enabled=false
write volume persistence.enabled=true remora.data.claim=memory-data remora.backups.claim=memory-backups
write tcp remora.tcp.enabled=true remora.tcp.tokenSecret=remora-tokens \
    "remora.tcp.clients[0].podSelector.matchLabels.remora-client=yes"
write tls remora.tcp.enabled=true remora.tcp.tokenSecret=remora-tokens \
    "remora.tcp.clients[0].podSelector.matchLabels.remora-client=yes" \
    remora.tcp.tls.secret=remora-tls remora.tcp.tls.clientCertificates=true

if [[ ${1:-} == --check ]]; then
    helm lint --strict --kube-version "$KUBERNETES" "$work/remora" "$work/agent"
    diff --recursive --unified deploy/kubernetes "$work/kubernetes" ||
        { echo "deploy/kubernetes is out of date: run tools/write_kubernetes.sh" >&2; exit 1; }
else
    rm -f deploy/kubernetes/*.yaml
    cp "$work"/kubernetes/*.yaml deploy/kubernetes
fi
