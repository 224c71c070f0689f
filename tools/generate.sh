#!/usr/bin/env bash
# generate.sh [OUTPUT]: writes all code that is generated from the .proto files into the tree, or below OUTPUT.
# generate.sh --list: shows the folders that it writes. It deletes files in them that no longer have a source.
set -euo pipefail
cd "$(dirname "$0")/.."

folders=(
    clients/python/remora/v1 clients/typescript/packages/client/src/generated
    server/remora_server/rpc/contract server/remora_server/storage/v1 typings/google/rpc
)
if [[ ${1-} == --list ]]; then
    printf '%s\n' "${folders[@]}"
    exit
fi

output=${1-.}
for folder in "${folders[@]}"; do
    mkdir -p "$output/$folder"
    find "$output/$folder" \( -name '*_pb2*.py*' -o -name '*_pb.ts' \) -type f -delete
done

for template in buf.gen.yaml buf.gen.typescript.yaml buf.gen.server.yaml buf.gen.typings.yaml; do
    node_modules/.bin/buf generate --template "$template" --output "$output" 2> >(grep -v '^Writing mypy' >&2)
done

# The limits of fields are options, which the server reads from an image; clients are generated without them.
node_modules/.bin/buf build proto --exclude-source-info --as-file-descriptor-set \
    --output "$output/server/remora_server/rpc/contract/image.binpb"

# One module with everything of the contract, for imports.
typescript=$output/clients/typescript/packages/client/src/generated
for file in "$typescript"/remora/v1/*_pb.ts; do
    echo "export * from \"./remora/v1/$(basename "$file" .ts).js\";"
done >"$typescript/v1.ts"

# mypy-protobuf types a _pb2_grpc module for each file; only those with services have one.
for stub in "$output"/clients/python/remora/v1/*_pb2_grpc.pyi; do
    [[ -e ${stub%i} ]] || rm "$stub"
done
