"""The habits of the contract that buf's lint rules do not know, checked on the descriptors of remora.v1."""

import re
from importlib import import_module
from pathlib import Path

import pytest
from google.protobuf.descriptor import FileDescriptor, MethodDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, MethodOptions

from remora_server.domain import fact_prompts, facts, json_paths, memory_items, uploads, vectors, working_memory
from remora_server.rpc.checks import options

ROOT = Path(__file__).resolve().parents[2]
PROTOS = sorted((ROOT / "proto" / "remora" / "v1").glob("*.proto"))
SERVICE_FILES = [path for path in PROTOS if path.stem.endswith("_service")]
OUTSIDE_OF_STORE = {"AdminService", "TextService"}


def descriptor(path: Path) -> FileDescriptor:
    module = import_module(f"remora.v1.{path.stem}_pb2")
    file: FileDescriptor = module.DESCRIPTOR
    return file


METHODS: list[MethodDescriptor] = [
    method
    for path in SERVICE_FILES
    for service in descriptor(path).services_by_name.values()
    for method in service.methods
]


def is_read(method: MethodDescriptor) -> bool:
    options = method.GetOptions()
    assert isinstance(options, MethodOptions)
    return options.idempotency_level == MethodOptions.NO_SIDE_EFFECTS


def of_store(method: MethodDescriptor) -> bool:
    return method.containing_service.name not in OUTSIDE_OF_STORE


def named(methods: list[MethodDescriptor]) -> list[object]:
    return [pytest.param(method, id=method.full_name) for method in methods]


READS = [method for method in METHODS if is_read(method)]
WRITES = [method for method in METHODS if not is_read(method)]
LISTS = [method for method in METHODS if method.name.startswith("List")]


def test_there_are_reads_writes_and_lists() -> None:
    assert READS
    assert WRITES
    assert LISTS


@pytest.mark.parametrize("method", named([method for method in READS if of_store(method)]))
def test_what_only_reads_is_named_as_a_read(method: MethodDescriptor) -> None:
    assert not method.name.startswith(("Create", "Update", "Delete", "Append", "Set", "Save", "Clear", "Edit"))


@pytest.mark.parametrize("method", named([method for method in WRITES if of_store(method)]))
def test_a_write_takes_a_request_id_and_returns_its_revision(method: MethodDescriptor) -> None:
    assert "request_id" in method.input_type.fields_by_name
    assert "revision" in method.output_type.fields_by_name


@pytest.mark.parametrize("method", named([method for method in READS if of_store(method)]))
def test_a_read_waits_for_a_revision_and_says_which_it_shows(method: MethodDescriptor) -> None:
    assert "min_revision" in method.input_type.fields_by_name
    assert "revision" in method.output_type.fields_by_name


@pytest.mark.parametrize("method", named(LISTS))
def test_a_list_pages(method: MethodDescriptor) -> None:
    assert {"page_size", "page_token"} <= set(method.input_type.fields_by_name)
    assert "next_page_token" in method.output_type.fields_by_name


@pytest.mark.parametrize("method", named([method for method in METHODS if method.name.startswith("Update")]))
def test_an_update_takes_a_mask(method: MethodDescriptor) -> None:
    assert "update_mask" in method.input_type.fields_by_name


FIELD = re.compile(
    r"(?P<comment>(?:^ *//.*\n)+)^ *(?:optional |repeated )?[\w.]+(?:<.*>)? (?P<name>\w+) = \d+ "
    r"\[(?P<options>[^;]*)\];",
    re.MULTILINE,
)
SIZE = re.compile(r"(?:up to|at most|to) (\d[\d,]*)( KiB| MiB)?")
UNITS = {"": 1, " KiB": 1024, " MiB": 1024 * 1024}
LARGEST = re.compile(r"(?:max_bytes|max_len|max_items|max_pairs|int32\.lte) = (\d+)")


def limits_of_fields() -> list[object]:
    """What the comments and the options of fields say of the most that they may be."""
    found: list[object] = []
    for path in PROTOS:
        for field in FIELD.finditer(path.read_text("utf-8")):
            told = {int(size.replace(",", "")) * UNITS[unit or ""] for size, unit in SIZE.findall(field["comment"])}
            stated = {int(size) for size in LARGEST.findall(field["options"])}
            if told and stated:
                found.append(pytest.param(told, stated, id=f"{path.stem}.{field['name']}"))
    return found


LIMITS = limits_of_fields()


def test_there_are_limits_in_comments_and_options() -> None:
    assert len(LIMITS) > 50


@pytest.mark.parametrize(("told", "stated"), LIMITS)
def test_a_comment_tells_the_limit_that_the_options_state(told: set[int], stated: set[int]) -> None:
    assert told & stated


@pytest.mark.parametrize(
    ("field", "kind", "most"),
    [
        ("Fact.subject", "string", fact_prompts.LONGEST_NAME),
        ("Fact.predicate", "string", fact_prompts.LONGEST_NAME),
        ("Fact.object", "string", fact_prompts.LONGEST_OBJECT),
        ("Fact.sources", "repeated", facts.MOST_SOURCES),
        ("MemoryItem.text", "string", memory_items.LONGEST_TEXT),
        ("UploadCheckpointPartRequest.data", "bytes", uploads.PART_BYTES),
        ("SetWorkingMemoryRequest.content", "bytes", working_memory.LONGEST),
        ("Embedding.values", "bytes", vectors.FLOAT_BYTES * vectors.MAX_DIMENSION),
        ("Path.steps", "repeated", json_paths.MOST_STEPS),
    ],
)
def test_what_the_domain_makes_has_the_limits_of_the_contract(field: str, kind: str, most: int) -> None:
    given = options.stated(options.of_contract().of_field(f"remora.v1.{field}")[kind])

    assert most in (given.get("max_bytes"), given.get("max_len"), given.get("max_items"))


def messages_of(path: Path) -> list[DescriptorProto]:
    file = FileDescriptorProto()
    descriptor(path).CopyToProto(file)
    return list(file.message_type)


def unused_numbers(message: DescriptorProto) -> set[int]:
    """The numbers below the highest field that are neither a field's nor reserved."""
    fields = {field.number for field in message.field}
    reserved = {number for some in message.reserved_range for number in range(some.start, some.end)}
    return set(range(1, max(fields, default=0))) - fields - reserved


def test_a_number_between_those_of_fields_is_reserved() -> None:
    messages = [message for path in PROTOS for message in messages_of(path)]

    assert [message.name for message in messages if message.reserved_range]
    assert {message.name: unused for message in messages if (unused := unused_numbers(message))} == {}
