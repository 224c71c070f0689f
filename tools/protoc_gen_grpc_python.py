"""A protoc plugin that writes gRPC's Python stubs with the compiler inside grpcio-tools.

buf runs plugins that speak protoc's plugin protocol; grpcio-tools holds the Python plugin within its own protoc only.
"""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.compiler.plugin_pb2 import CodeGeneratorRequest, CodeGeneratorResponse
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from grpc_tools import protoc


class CompilerError(RuntimeError):
    """grpcio-tools' protoc gave a code other than 0; it has said why on the standard error."""


def generate(request: CodeGeneratorRequest) -> CodeGeneratorResponse:
    """Return the stubs of the files to generate, one `_pb2_grpc.py` for each file that defines services."""
    with_services = {file.name for file in request.proto_file if file.service}
    names = [name for name in request.file_to_generate if name in with_services]
    response = CodeGeneratorResponse(supported_features=CodeGeneratorResponse.FEATURE_PROTO3_OPTIONAL)
    if names:
        response.file.extend(stubs(FileDescriptorSet(file=request.proto_file), names))
    return response


def stubs(descriptors: FileDescriptorSet, names: list[str]) -> Iterator[CodeGeneratorResponse.File]:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        image = root / "image.binpb"
        image.write_bytes(descriptors.SerializeToString())
        output = root / "output"
        output.mkdir()
        code = protoc.main(["protoc", f"--descriptor_set_in={image}", f"--grpc_python_out={output}", *names])
        if code != 0:
            raise CompilerError(f"protoc ended with {code}")
        for path in sorted(output.rglob("*.py")):
            yield CodeGeneratorResponse.File(name=path.relative_to(output).as_posix(), content=path.read_text("utf-8"))


if __name__ == "__main__":
    reply = generate(CodeGeneratorRequest.FromString(sys.stdin.buffer.read()))
    sys.stdout.buffer.write(reply.SerializeToString())
