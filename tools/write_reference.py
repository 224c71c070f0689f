"""Writes docs/reference from its sources: the settings, the Python client and the gRPC contract.

`--check` changes nothing and fails if a page is out of date.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)

import remora
from remora_server.commands.setting_flags import default_of
from remora_server.settings.settings import KEYS, Key

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "reference"
PACKAGE = "remora.v1"
_CALLS = "remora/v1/calls.proto"
_PACKAGE_STATEMENT = (2,)
_ERROR = re.compile(r"^(?=[A-Z_]+, [A-Z_]+: )")
_ATTRIBUTE = re.compile(r" {4}\w+: ")
HEAD = "<!-- Written by tools/write_reference.py. Do not edit: run `make gen`. -->\n\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pages, or check them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args(arguments)
    pages = {"settings.md": settings(), "python.md": python(), "grpc.md": grpc()}
    stale = [name for name, lines in pages.items() if _is_stale(PAGES / name, _page(lines))]
    if given.check:
        for name in stale:
            print(f"docs/reference/{name} is out of date; run `make gen`", file=sys.stderr)
        return 1 if stale else 0
    for name in stale:
        PAGES.mkdir(parents=True, exist_ok=True)
        (PAGES / name).write_text(_page(pages[name]), "utf-8")
    return 0


def _page(lines: list[str]) -> str:
    return HEAD + "\n".join(lines).rstrip() + "\n"


def _is_stale(file: Path, text: str) -> bool:
    return not file.exists() or file.read_text("utf-8") != text


def settings() -> list[str]:
    """The page of the settings."""
    return [
        "# Settings",
        "",
        "A flag overrides the variable, which overrides the key in the file (`--config`), which overrides the default.",
        "`remora config` shows the effective values and where each comes from.",
        "",
        "| flag | variable | key | what it sets |",
        "|---|---|---|---|",
        *map(_setting, KEYS),
    ]


def _setting(key: Key) -> str:
    choices = f" One of {', '.join(f'`{choice}`' for choice in key.choices)}." if key.choices else ""
    return f"| `{key.flag}` | `{key.variable}` | `{key.name}` | {_cell(key.help + default_of(key))}.{choices} |"


def python() -> list[str]:
    """The page of the Python client: the classes that the package exports, by name."""
    classes = [name for name in sorted(remora.__all__) if inspect.isclass(getattr(remora, name))]
    asynchronous = [f"`{name}`" for name in classes if name.startswith("Async")]
    said = f"{', '.join(asynchronous[:-1])} and {asynchronous[-1]} have the same methods for asyncio."
    lines = ["# The Python client", "", *textwrap.wrap(f"Everything is imported from `remora`. {said}", 120)]
    for name in classes:
        if not name.startswith("Async"):
            lines += _python_class(name, _class_node(getattr(remora, name)))
    return lines


def _class_node(exported: type) -> ast.ClassDef:
    tree = _WithoutBounds().visit(ast.parse(Path(inspect.getfile(exported)).read_text("utf-8")))
    return next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == exported.__name__)


class _WithoutBounds(ast.NodeTransformer):
    """Makes `X` of `Annotated[X, ...]`: the bounds are in the docstrings."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        is_annotated = isinstance(node.value, ast.Name) and node.value.id == "Annotated"
        return node.slice.elts[0] if is_annotated and isinstance(node.slice, ast.Tuple) else node


def _python_class(name: str, node: ast.ClassDef) -> Iterator[str]:
    text, attributes = _parted(ast.get_docstring(node) or "")
    yield from ("", f"## {name}", "", *text.splitlines())
    if attributes:
        kinds = {
            ast.unparse(member.target): member.annotation for member in node.body if isinstance(member, ast.AnnAssign)
        }
        yield from ("", "| attribute | type | |", "|---|---|---|")
        for attribute, said in attributes.items():
            kind = f"`{_cell(ast.unparse(kinds[attribute]))}`" if attribute in kinds else ""
            yield f"| `{attribute}` | {kind} | {_cell(said)} |"
    for member in node.body:
        if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef) and _is_shown(member):
            yield from ("", f"### {_signature(name, member)}", "", *(ast.get_docstring(member) or "").splitlines())


def _is_shown(member: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether users call it: neither what converts to and from the wire, nor the constructor of a handle."""
    if member.name == "__init__":
        return not any(
            argument.annotation and ast.unparse(argument.annotation) == "Calls" for argument in member.args.args
        )
    return not member.name.startswith("_") and not member.name.endswith("_proto")


def _signature(owner: str, member: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    decorators = {decorator.id for decorator in member.decorator_list if isinstance(decorator, ast.Name)}
    if "property" in decorators:
        return f"`{owner}.{member.name}`"
    parameters = ast.unparse(member.args).removeprefix("self").removeprefix("cls").removeprefix(", ")
    awaited = "await " if isinstance(member, ast.AsyncFunctionDef) else ""
    called = owner if member.name == "__init__" else f"{owner}.{member.name}"
    returned = "" if member.name == "__init__" or member.returns is None else f" -> {ast.unparse(member.returns)}"
    return f"`{awaited}{called}({parameters}){returned}`"


def _parted(docstring: str) -> tuple[str, dict[str, str]]:
    """A docstring up to its section of attributes, and these by name."""
    text, _, section = docstring.partition("Attributes:\n")
    attributes: dict[str, str] = {}
    for line in section.splitlines():
        if _ATTRIBUTE.match(line):
            name, _, said = line.strip().partition(": ")
            attributes[name] = said
        elif line.strip() and attributes:
            attributes[next(reversed(attributes))] += f" {line.strip()}"
    return text.rstrip(), attributes


def grpc() -> list[str]:
    """The page of the contract: what all calls have in common, the services, the messages that several of them use."""
    contract = Contract(_described())
    where = "Errors are in the comment of each RPC, and under [All calls](#all-calls)."
    lines = ["# The gRPC contract", "", f"Package `{PACKAGE}`. {where}"]
    return [*lines, *contract.calls(), *contract.services(), *contract.shared()]


def _described() -> FileDescriptorSet:
    command = [str(ROOT / "node_modules" / ".bin" / "buf"), "build", "proto", "--output", "-"]
    return FileDescriptorSet.FromString(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)


class Contract:
    """The descriptors of the package with their comments."""

    def __init__(self, described: FileDescriptorSet) -> None:
        self._files = [file for file in described.file if file.package == PACKAGE]
        self._comments: dict[str, str] = {}
        self._messages: dict[str, DescriptorProto] = {}
        self._enums: dict[str, EnumDescriptorProto] = {}
        for file in self._files:
            self._read(file)
        self._own: set[str] = set()

    def _read(self, file: FileDescriptorProto) -> None:
        by_path = {tuple(place.path): place.leading_comments for place in file.source_code_info.location}
        self._comments[file.name] = by_path.get(_PACKAGE_STATEMENT, "")
        for number, message in enumerate(file.message_type):
            self._read_message(message, message.name, (4, number), by_path)
        for number, enum in enumerate(file.enum_type):
            self._read_enum(enum, enum.name, (5, number), by_path)
        for number, service in enumerate(file.service):
            self._comments[service.name] = by_path.get((6, number), "")
            for inner, method in enumerate(service.method):
                self._comments[f"{service.name}.{method.name}"] = by_path.get((6, number, 2, inner), "")

    def _read_message(
        self, message: DescriptorProto, name: str, path: tuple[int, ...], by_path: dict[tuple[int, ...], str]
    ) -> None:
        if message.options.map_entry:
            return
        self._messages[name] = message
        self._comments[name] = by_path.get(path, "")
        for number, field in enumerate(message.field):
            self._comments[f"{name}.{field.name}"] = by_path.get((*path, 2, number), "")
        for number, nested in enumerate(message.nested_type):
            self._read_message(nested, f"{name}.{nested.name}", (*path, 3, number), by_path)
        for number, enum in enumerate(message.enum_type):
            self._read_enum(enum, f"{name}.{enum.name}", (*path, 4, number), by_path)

    def _read_enum(
        self, enum: EnumDescriptorProto, name: str, path: tuple[int, ...], by_path: dict[tuple[int, ...], str]
    ) -> None:
        self._enums[name] = enum
        self._comments[name] = by_path.get(path, "")
        for number, value in enumerate(enum.value):
            self._comments[f"{name}.{value.name}"] = by_path.get((*path, 2, number), "")

    def calls(self) -> Iterator[str]:
        """What holds for all calls; each error is an item of a list."""
        yield from ("", "## All calls", "")
        yield from (_ERROR.sub("- ", line) for line in self._text(_CALLS))

    def services(self) -> Iterator[str]:
        """Each service with its RPCs, their requests and their replies."""
        for file in self._files:
            for service in file.service:
                yield from ("", f"## {service.name}", "", *self._text(service.name))
                for method in service.method:
                    request, reply = (_short(kind) for kind in (method.input_type, method.output_type))
                    streamed = "stream " if method.server_streaming else ""
                    yield from ("", f"### {method.name}", "", *self._text(f"{service.name}.{method.name}"))
                    yield from ("", f"`{request}` → `{streamed}{reply}`")
                    for message in (request, reply):
                        yield from self._fields(message)

    def shared(self) -> Iterator[str]:
        """The messages and enums that are not one RPC's own."""
        yield from ("", "## Messages")
        for name in sorted(self._messages.keys() - self._own):
            yield from ("", f"### {name}", "", *self._text(name), *self._fields(name))
        yield from ("", "## Enums")
        for name, enum in sorted(self._enums.items()):
            yield from ("", f"### {name}", "", *self._text(name), "", "| value | |", "|---|---|")
            for value in enum.value:
                yield f"| `{value.name}` | {self._cell(f'{name}.{value.name}')} |"

    def _fields(self, name: str) -> Iterator[str]:
        self._own.add(name)
        fields = self._messages[name].field if name in self._messages else ()
        if fields:
            yield from ("", f"| `{name}` | type | |", "|---|---|---|")
        for field in fields:
            yield f"| `{field.name}` | {self._kind(name, field)} | {self._cell(f'{name}.{field.name}')} |"

    def _kind(self, owner: str, field: FieldDescriptorProto) -> str:
        entry = next((nested for nested in self._nested(owner) if field.type_name.endswith(f".{nested.name}")), None)
        if entry is not None:
            return f"`map<{_scalar(entry.field[0])}, {_scalar(entry.field[1])}>`"
        is_list = field.label == FieldDescriptorProto.LABEL_REPEATED
        is_optional = field.proto3_optional
        return f"`{'repeated ' if is_list else 'optional ' if is_optional else ''}{_scalar(field)}`"

    def _nested(self, owner: str) -> Iterator[DescriptorProto]:
        return (nested for nested in self._messages[owner].nested_type if nested.options.map_entry)

    def _text(self, name: str) -> list[str]:
        return [line.strip() for line in self._comments[name].strip().splitlines()]

    def _cell(self, name: str) -> str:
        return _cell(self._comments[name])


def _scalar(field: FieldDescriptorProto) -> str:
    if field.type_name:
        return _short(field.type_name)
    return FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()


def _short(name: str) -> str:
    return name.removeprefix(".").removeprefix(f"{PACKAGE}.")


def _cell(text: str) -> str:
    """Text in one cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
