"""What images cost in tokens, by the rules that providers publish for their models.

OpenAI: "Images and vision", section "Calculating costs" (https://platform.openai.com/docs/guides/images-vision): some
models cost by tiles of 512 pixels, others by patches of 32. Anthropic: "Vision", section "Calculate image costs"
(https://docs.anthropic.com/en/docs/build-with-claude/vision). RULES does not have newer models with other rules, nor
gpt-5-mini and gpt-5-nano, which are not billed by their documented rule.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Protocol

from msgspec import Struct


class Detail(Enum):
    """How closely a model is to look."""

    HIGH = "high"
    LOW = "low"


class Image(Struct, frozen=True):
    """An image's size in pixels, 0 if it is unknown."""

    width: int
    height: int
    detail: Detail = Detail.HIGH

    @property
    def is_sized(self) -> bool:
        return self.width > 0 and self.height > 0


class Rule(Protocol):
    """The cost of an image for a model; None if too little is known of the image."""

    def tokens(self, image: Image) -> int | None: ...


class Tiles(Struct, frozen=True):
    """`base`, and `tile` for each tile of 512 x 512 pixels of the image, which is scaled down to fit into 2,048 x 2,048
    and then to a shorter side of at most 768 pixels. Low detail costs the base alone.
    """

    base: int
    tile: int

    def tokens(self, image: Image) -> int | None:
        if image.detail is Detail.LOW:
            return self.base
        if not image.is_sized:
            return None
        shrink = min(1.0, 2048 / max(image.width, image.height))
        shrink *= min(1.0, 768 / (min(image.width, image.height) * shrink))
        across, down = (_covering(side * shrink, 512) for side in (image.width, image.height))
        return self.base + self.tile * across * down


class Patches(Struct, frozen=True):
    """`factor` for each patch of 32 x 32 pixels. There are at most 1,536: a larger image is scaled down to fit into
    whole patches.
    """

    factor: float
    most: int = 1_536

    def tokens(self, image: Image) -> int | None:
        if not image.is_sized:
            return None
        across, down = _covering(image.width, 32), _covering(image.height, 32)
        if across * down > self.most:
            across, down = self._shrunk(image)
        return round(min(across * down, self.most) * self.factor)

    def _shrunk(self, image: Image) -> tuple[int, int]:
        shrink = (32 * 32 * self.most / (image.width * image.height)) ** 0.5
        across, down = image.width * shrink / 32, image.height * shrink / 32
        shrink *= min(max(1, int(across)) / across, max(1, int(down)) / down)
        return _covering(image.width * shrink, 32), _covering(image.height * shrink, 32)


class Area(Struct, frozen=True):
    """A token for each 750 pixels of the image, which is scaled down to a longer side of at most 1,568 pixels and to at
    most 1,600 tokens.
    """

    pixels: int = 750
    longest: int = 1_568
    most: int = 1_600

    def tokens(self, image: Image) -> int | None:
        if not image.is_sized:
            return None
        shrink = min(1.0, self.longest / max(image.width, image.height))
        across, down = (max(1, round(side * shrink)) for side in (image.width, image.height))
        return min(self.most, -(-across * down // self.pixels))


DATED = r"(-\d{4}-?\d{2}-?\d{2}|-latest)?"
RULES: tuple[tuple[re.Pattern[str], Rule], ...] = tuple(
    (re.compile(f"({pattern}){DATED}"), rule)
    for pattern, rule in (
        (r"gpt-4o-mini", Tiles(2_833, 5_667)),
        (r"chatgpt-4o|gpt-4o|gpt-4\.1|gpt-4\.5-preview", Tiles(85, 170)),
        (r"gpt-5|gpt-5-chat", Tiles(70, 140)),
        (r"o1|o1-pro|o3", Tiles(75, 150)),
        (r"computer-use-preview", Tiles(65, 129)),
        (r"gpt-4\.1-mini", Patches(1.62)),
        (r"gpt-4\.1-nano", Patches(2.46)),
        (r"o4-mini", Patches(1.72)),
        (r"claude-3(-[57])?-(opus|sonnet|haiku)", Area()),
        (r"claude-(opus|sonnet|haiku)-4(-[0156])?", Area()),
    )
)
"""The rules, by names of models, with or without a date."""


def image_rule(model: str) -> Rule | None:
    """The rule of a model; None if there is none."""
    return next((rule for pattern, rule in RULES if pattern.fullmatch(model)), None)


def _covering(length: float, piece: int) -> int:
    """How many pieces cover a length. A scaled length is a whole number up to the error of floating point."""
    return max(1, -int(-round(length, 6) // piece))
