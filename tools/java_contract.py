"""Reads the contract's descriptors and writes those that Maven compiles the Java client from.

The contract names no language's packages, and has options that only the server reads. buf adds the ones and leaves out
the others for languages whose plugins it runs; Java's generator is inside protoc, which Maven runs itself.
"""

import sys
from collections.abc import Iterator

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

SERVERS = "buf/validate/validate.proto"
PACKAGE = "dev.remora.v1"


def for_java(contract: FileDescriptorSet) -> Iterator[FileDescriptorProto]:
    """The files that a client needs, with Java's names and with the comments, which become Javadoc."""
    for file in contract.file:
        if file.name in {SERVERS, "google/protobuf/descriptor.proto"}:
            continue
        if file.package == "remora.v1":
            file.options.java_package = PACKAGE
            file.options.java_multiple_files = True
            keep_comments(file)
        file.DiscardUnknownFields()  # the server's options, which nothing here declares
        imports = [name for name in file.dependency if name != SERVERS]
        del file.dependency[:]
        file.dependency.extend(imports)
        yield file


def keep_comments(file: FileDescriptorProto) -> None:
    """Drop the places in the source of everything that has no comment."""
    commented = [place for place in file.source_code_info.location if place.leading_comments or place.trailing_comments]
    del file.source_code_info.location[:]
    file.source_code_info.location.extend(commented)


if __name__ == "__main__":
    read = FileDescriptorSet.FromString(sys.stdin.buffer.read())
    sys.stdout.buffer.write(FileDescriptorSet(file=for_java(read)).SerializeToString(deterministic=True))
