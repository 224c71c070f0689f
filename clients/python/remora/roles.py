"""Roles of messages: those that models know, and others on purpose."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Self, TypeAlias

from remora import _refusals
from remora._bounds import Name

KNOWN_ROLES = ("user", "assistant", "system", "tool", "developer", "function")
"""The roles that models know."""


class Role(str):
    """A role that models do not know, on purpose: `Message(Role.custom("narrator"), "Night falls.")`.

    The known roles (`KNOWN_ROLES`) are written as plain text. Any other plain text is refused, as it is mostly a typo.
    """

    __slots__ = ()

    @classmethod
    def custom(cls, name: str) -> Self:
        """The role of this name, 1 to 64 bytes."""
        if not isinstance(name, str):
            raise _refusals.wrong_type("name", name, "a str")
        Name(KnownRole.most).require(name, "name")
        return cls(name)


@dataclass(frozen=True, slots=True)
class KnownRole:
    """A known role, or a `Role`."""

    most: ClassVar[int] = 64
    """Bytes of a name."""

    def require(self, value: str, field: str) -> None:
        """Raises InvalidFieldError for any other text."""
        if value not in KNOWN_ROLES and not isinstance(value, Role):
            raise _refusals.invalid(field, f"is {value!r}, which no model knows{_suggestion(value)}")


RoleName: TypeAlias = Annotated[str, KnownRole()]
"""A role: one of `KNOWN_ROLES`, or a `Role`."""


def _suggestion(value: str) -> str:
    meant = _refusals.meant(value, KNOWN_ROLES)
    if meant:
        return f"; did you mean {meant!r}? (A role of your own is Role.custom({value!r}))"
    return f"; known are {_refusals.listed(KNOWN_ROLES, 'and')}, and a role of your own is Role.custom({value!r})"
