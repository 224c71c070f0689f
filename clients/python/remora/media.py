"""What a message holds besides text and tools, as the server counts it."""

from dataclasses import dataclass
from typing import Literal, Self

from remora._arguments import checked_fields
from remora._bounds import Count
from remora.v1 import message_pb2


@checked_fields
@dataclass(frozen=True, slots=True)
class Image:
    """The size of an image in pixels; 0 if it is not known.

    Attributes:
        width: In pixels; 0: not known.
        height: In pixels; 0: not known.
        detail: How closely the model is to look.
    """

    width: Count = 0
    height: Count = 0
    detail: Literal["low", "high"] = "high"


@checked_fields
@dataclass(frozen=True, slots=True)
class Media:
    """What a model gets of a message's parts besides the text and the tools: all of it.

    Attributes:
        images: Counted by the rule of the model that a request names.
        uncounted: What cannot be counted, such as `audio`.
    """

    images: tuple[Image, ...] = ()
    uncounted: tuple[str, ...] = ()

    def to_proto(self) -> message_pb2.Media:
        """The media on the wire."""
        return message_pb2.Media(images=map(_image_to_proto, self.images), uncounted=self.uncounted)

    @classmethod
    def from_proto(cls, media: message_pb2.Media) -> Self:
        """The media from the wire."""
        return cls(tuple(map(_image_from_proto, media.images)), tuple(media.uncounted))


def media_names(media: Media | None) -> list[str]:
    """What media hold, for people: `image of 640x480`, `image of unknown size`, `audio`."""
    if media is None:
        return []
    return [*map(_image_name, media.images), *media.uncounted]


def _image_name(image: Image) -> str:
    known = image.width and image.height
    return f"image of {image.width}x{image.height}" if known else "image of unknown size"


def _image_to_proto(image: Image) -> message_pb2.Image:
    detail = message_pb2.IMAGE_DETAIL_LOW if image.detail == "low" else message_pb2.IMAGE_DETAIL_HIGH
    return message_pb2.Image(width=image.width, height=image.height, detail=detail)


def _image_from_proto(image: message_pb2.Image) -> Image:
    return Image(image.width, image.height, "low" if image.detail == message_pb2.IMAGE_DETAIL_LOW else "high")
