#!/usr/bin/env bash
# Writes all code that is generated from the .proto files anew; what no longer has a source disappears.
set -euo pipefail
cd "$(dirname "$0")/.."

generated=(clients/python/remora/v1 server/remora_server/storage/v1 typings/google/rpc)
mkdir -p "${generated[@]}"
find "${generated[@]}" -name '*_pb2*.py*' -type f -delete

for template in buf.gen.yaml buf.gen.server.yaml buf.gen.typings.yaml; do
    node_modules/.bin/buf generate --template "$template"
done

# mypy-protobuf types a _pb2_grpc module for each file; only those with services have one.
for stub in clients/python/remora/v1/*_pb2_grpc.pyi; do
    [[ -e "${stub%i}" ]] || rm "$stub"
done
