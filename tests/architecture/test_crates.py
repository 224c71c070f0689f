"""What the crates in `rust/` use: each other as their heads and ARCHITECTURE.md say, and their modules in no circle.

Cargo sees that crates use each other in no circle.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TypeAlias

import pytest

ROOT = Path(__file__).resolve().parents[2]
RUST = ROOT / "rust"
CRATES = sorted(path.parent.name for path in RUST.glob("*/Cargo.toml"))

Module: TypeAlias = tuple[str, ...]
"""A module by its path from the root of its crate."""

INNER = {"crate", "super", "self"}
COMMENT = re.compile(r"//.*")
TESTS = "#[cfg(test)]\nmod tests {"
DECLARED = re.compile(r"(#\[cfg\(test\)\]\s*)?^(?:pub(?:\([^)]*\))? )?mod (\w+);", re.MULTILINE)
USED = re.compile(r"^\s*(?:pub(?:\([^)]*\))? )?use ([^;]+);", re.MULTILINE)
PATH = re.compile(r"\b(?:crate|super|self)(?:::\w+)+")


class Crate:
    """The modules of a crate but for its tests."""

    def __init__(self, root: Path) -> None:
        self.sources: dict[Module, str] = {}
        self._read((), root / "lib.rs", root)

    def _read(self, module: Module, file: Path, folder: Path) -> None:
        source = COMMENT.sub("", file.read_text(encoding="utf-8")).partition(TESTS)[0]
        self.sources[module] = source
        for is_test, name in DECLARED.findall(source):
            if not is_test:
                alone = folder / f"{name}.rs"
                self._read((*module, name), alone if alone.exists() else folder / name / "mod.rs", folder / name)

    def between_siblings(self) -> Iterator[tuple[Module, Module]]:
        """Which module uses which, each as it or the one of its ancestors that stands beside the other."""
        for module, source in self.sources.items():
            for path in paths_in(source):
                used = self._resolve(module, path)
                for depth, (one, other) in enumerate(zip(module, used, strict=False), start=1):
                    if one != other:
                        yield module[:depth], used[:depth]
                        break

    def _resolve(self, module: Module, path: list[str]) -> Module:
        """The module that a path leads to from another, as far as its names are those of modules."""
        for name in path:
            match name:
                case "crate":
                    module = ()
                case "super":
                    module = module[:-1]
                case "self":
                    pass
                case _ if (*module, name) in self.sources:
                    module = (*module, name)
                case _:
                    return self._origin(module, name)
        return module

    def _origin(self, module: Module, name: str) -> Module:
        """The module that a name comes from which another hands on."""
        for *path, last in used_in(self.sources[module]):
            if last == name and path and (path[0] in INNER or (*module, path[0]) in self.sources):
                origin = self._resolve(module, path)
                if origin != module:
                    return self._origin(origin, name)
        return module


def paths_in(source: str) -> Iterator[list[str]]:
    """The paths that a source names: all that it uses, and those into its own crate that it names elsewhere."""
    yield from used_in(source)
    for path in PATH.findall(USED.sub("", source)):
        yield path.split("::")


def used_in(source: str) -> Iterator[list[str]]:
    for tree in USED.findall(source):
        yield from expanded("".join(re.sub(r"\s+as\s+\w+", "", tree).split()))


def expanded(tree: str) -> Iterator[list[str]]:
    """The paths of a tree: `a::{b, c::d}` has a::b and a::c::d."""
    head, brace, inner = tree.partition("{")
    prefix = [name for name in head.split("::") if name not in {"", "*"}]
    if not brace:
        yield prefix
        return
    depth = start = 0
    for at, character in enumerate(inner):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if (character == "," and not depth) or depth < 0:
            for path in expanded(inner[start:at]):
                yield [*prefix, *path]
            start = at + 1


def circle_in(crate: Crate) -> list[str]:
    order: TopologicalSorter[Module] = TopologicalSorter(dict.fromkeys(crate.sources, ()))
    for user, used in crate.between_siblings():
        order.add(user, used)
    try:
        order.prepare()
    except CycleError as error:
        return ["::".join(module) for module in error.args[1]]
    return []


@pytest.mark.parametrize("name", CRATES)
def test_modules_beside_each_other_use_each_other_in_no_circle(name: str) -> None:
    crate = Crate(RUST / name / "src")

    assert circle_in(crate) == []


def test_there_are_crates_whose_modules_use_each_other() -> None:
    assert len([name for name in CRATES if list(Crate(RUST / name / "src").between_siblings())]) > len(CRATES) // 2


def test_a_circle_is_found_through_what_others_hand_on(tmp_path: Path) -> None:
    files = {
        "lib.rs": "mod a;\npub mod b;\npub use b::{inner::Thing, Other};\n#[cfg(test)]\nmod tests;\n",
        "a.rs": "use super::{Other, Thing as Named};\n",
        "b/mod.rs": "pub mod inner;\npub struct Other;\n",
        "b/inner.rs": "fn f() -> crate::a::A { todo!() }\npub struct Thing;\n",
    }
    for name, source in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(source)
    crate = Crate(tmp_path)

    assert set(crate.between_siblings()) == {(("a",), ("b",)), (("b",), ("a",))}
    assert circle_in(crate)


HEAD = re.compile(r"\A(?://!.*\n)+")
KNOWN = re.compile(r"^Knows(?: no other crate|: ((?:`\w+`, )*`\w+`))[.,]", re.MULTILINE)
PICTURE = re.compile(r"^```\n(native: .*?)^```$", re.MULTILINE | re.DOTALL)
BRANCH = re.compile(r"^((?:[│├└─ ]{4})*)(\w+)", re.MULTILINE)
SHARED = re.compile(r"^\| `(\w+)` \| [^|]+ \| ([\w, ]+) \|$", re.MULTILINE)
ABOVE_ALL = {"native", "fuzzed"}
"""They use many others, which the picture does not repeat."""


def depends_on(name: str) -> set[str]:
    """The crates of the workspace that a crate uses, by its manifest."""
    manifest = tomllib.loads((RUST / name / "Cargo.toml").read_text("utf-8"))
    return {used.removeprefix("remora-") for used in manifest.get("dependencies", {}) if used.startswith("remora-")}


def said_at_head(name: str) -> set[str] | None:
    """The crates that the head of a crate names as those that it knows; None if it does not tell."""
    head = HEAD.search((RUST / name / "src" / "lib.rs").read_text("utf-8"))
    assert head
    paragraphs = re.sub(r"^//! ?", "", head[0], flags=re.MULTILINE).split("\n\n")
    known = [found for paragraph in paragraphs if (found := KNOWN.search(" ".join(paragraph.split())))]
    return set(re.findall(r"\w+", known[0][1] or "")) if len(known) == 1 else None


def section_on_crates() -> str:
    return (
        (ROOT / "ARCHITECTURE.md").read_text("utf-8").partition("## The crates of the engine")[2].partition("\n## ")[0]
    )


def drawn() -> Iterator[tuple[str, str]]:
    """Each crate of the picture with the one above it."""
    picture = PICTURE.search(section_on_crates())
    assert picture
    above: list[str] = []
    for indent, name in BRANCH.findall(picture[1]):
        del above[len(indent) // 4 :]
        yield from ((user, name) for user in above[-1:])
        above.append(name)


def in_the_table() -> Iterator[tuple[str, str]]:
    """Each crate that several use, with each of them."""
    for name, users in SHARED.findall(section_on_crates()):
        yield from ((user, name) for user in users.split(", "))


@pytest.mark.parametrize("name", CRATES)
def test_a_crate_says_at_its_head_which_others_it_knows(name: str) -> None:
    assert said_at_head(name) == depends_on(name)


def test_the_picture_of_the_crates_is_that_of_their_manifests() -> None:
    told = {*drawn(), *in_the_table()}
    real = {(name, used) for name in CRATES for used in depends_on(name)}

    assert {crate for pair in told for crate in pair} == {*CRATES} - {"fuzzed"}
    assert {pair for pair in told if pair[0] not in ABOVE_ALL} == {pair for pair in real if pair[0] not in ABOVE_ALL}
    assert {pair for pair in told if pair[0] in ABOVE_ALL} <= real


def test_jemalloc_is_linked_only_where_the_c_library_is_glibc() -> None:
    """A jemalloc for macOS does not start with its options: every thread but the first would wait in it for good."""
    manifest = tomllib.loads((RUST / "native" / "Cargo.toml").read_text("utf-8"))
    linked = {target for target, each in manifest["target"].items() if "tikv-jemallocator" in each["dependencies"]}

    assert linked == {'cfg(all(target_os = "linux", target_env = "gnu"))'}
    assert "tikv-jemallocator" not in manifest["dependencies"]
