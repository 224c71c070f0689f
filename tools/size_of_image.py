"""Prints how large both images are, packed as a registry keeps them and unpacked, and which parts take it.

The arguments: a folder that `buildah push IMAGE dir:FOLDER` wrote, of the image with the model; and one of its base.
The image without the model is the one with it less its last layer: that the layer holds nothing else is checked.
"""

from __future__ import annotations

import json
import sys
import tarfile
from pathlib import Path
from typing import NamedTuple

MODEL = "opt/model"
MEGABYTE = 1_000_000


class Size(NamedTuple):
    """Bytes of a part."""

    packed: int
    unpacked: int


def main(image: str, base: str) -> None:
    whole, below = layers(Path(image)), layers(Path(base))
    if not is_model(whole[-1]):
        raise SystemExit(f"the last layer of the image holds more than /{MODEL}")
    own = [size_of(layer) for layer in whole]
    of_base, without = total(own[: len(below)]), total(own[:-1])
    tell("the base, here a stand-in", of_base)
    tell("Remora and its packages", total(own[len(below) : -1]))
    tell("the model", own[-1])
    tell("the target without-model", without)
    tell("the image", total(own))


def layers(pushed: Path) -> list[Path]:
    """The blobs of a pushed image, the base's first."""
    manifest = json.loads((pushed / "manifest.json").read_text("utf-8"))
    return [pushed / layer["digest"].removeprefix("sha256:") for layer in manifest["layers"]]


def is_model(layer: Path) -> bool:
    with tarfile.open(layer) as files:
        return all(MODEL.startswith(file.name) or file.name.startswith(f"{MODEL}/") for file in files)


def size_of(layer: Path) -> Size:
    with tarfile.open(layer) as files:
        return Size(layer.stat().st_size, sum(file.size for file in files))


def total(sizes: list[Size]) -> Size:
    return Size(sum(size.packed for size in sizes), sum(size.unpacked for size in sizes))


def tell(what: str, size: Size) -> None:
    sys.stdout.write(f"{what}: {size.packed / MEGABYTE:.0f} MB packed, {size.unpacked / MEGABYTE:.0f} MB unpacked\n")


main(*sys.argv[1:])
