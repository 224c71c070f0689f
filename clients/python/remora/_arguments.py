"""Checks the arguments of public calls before anything is sent: `checked` a class of calls, `checked_fields` a value.

A check costs a microsecond or two. A call's annotations are read when it is first made.
"""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, TypeVar, Unpack, get_args, get_origin, get_type_hints

from remora import _refusals
from remora._bounds import IfMissing
from remora._checks import Check, check_of, options_of
from remora.errors import InvalidArgumentError

_NOTHING: Mapping[str, str] = {}

ClassT = TypeVar("ClassT", bound=type)


def checked(cls: ClassT) -> ClassT:
    """Decorates a class: its public methods refuse unknown names and values that do not fit their annotations.

    The docstring of a method is followed by the options that calls have in common, and by those of a TypedDict. Names
    in the class's `_settled` are answered with what it says of them.
    """
    settled = vars(cls).get("_settled", {})
    for name, member in list(vars(cls).items()):
        if isinstance(member, classmethod):
            setattr(cls, name, classmethod(_checking(member.__func__, f"{cls.__name__}.{name}()", settled)))
        elif inspect.isfunction(member) and not name.startswith("_"):
            setattr(cls, name, _checking(member, f"{cls.__name__}.{name}()", settled))
    return checked_fields(cls) if "__init__" in vars(cls) else cls


def checked_fields(cls: ClassT) -> ClassT:
    """Decorates a class: making a value of it refuses unknown names and values that do not fit the annotations."""
    cls.__init__ = _checking(cls.__init__, f"{cls.__name__}()")  # type: ignore[misc]
    return cls


def _checking(function: Callable[..., Any], owner: str, settled: Mapping[str, str] = _NOTHING) -> Callable[..., Any]:
    @functools.cache
    def demands() -> _Demands:
        return _demands_of(function, owner)._replace(settled=settled)

    def require(given: Sequence[object], named: Mapping[str, object]) -> None:
        try:
            demands().require(given, named)
        except InvalidArgumentError as error:
            raise error.with_traceback(None) from None  # how the checks found it helps nobody

    def call(self: object, /, *given: Any, **named: Any) -> Any:  # noqa: ANN401 - what the function gives
        require(given, named)
        return function(self, *given, **named)

    async def call_async(self: object, /, *given: Any, **named: Any) -> Any:  # noqa: ANN401 - what the function gives
        require(given, named)
        return await function(self, *given, **named)

    checking = functools.wraps(function)(call_async if inspect.iscoroutinefunction(function) else call)
    checking.__doc__ = _documented(function)
    return checking


class _Demands(NamedTuple):
    """What a function demands of its arguments, apart from `self`."""

    owner: str
    positional: tuple[tuple[str, Check], ...]
    rest: tuple[str, Check] | None
    named: Mapping[str, Check]
    required: tuple[tuple[int, str, str], ...]
    """For each required argument: at which position it can be (-1: at none), its name and what to say without it."""
    settled: Mapping[str, str] = _NOTHING
    """What to say of names that the function does not have because they were given before."""

    def require(self, given: Sequence[object], named: Mapping[str, object]) -> None:
        """Raises an InvalidFieldError unless the arguments are acceptable."""
        for (name, check), value in zip(self.positional, given, strict=False):
            check.require(value, name)
        if len(given) > len(self.positional):
            self._require_rest(given)
        for name, value in named.items():
            check_named = self.named.get(name)
            if check_named is None:
                advice, otherwise = self.settled.get(name, ""), self._missing(given, named)[1]
                raise _refusals.unknown(self.owner, name, self.named, advice=advice, otherwise=otherwise)
            check_named.require(value, name)
        if self.required:
            missing, advice = self._missing(given, named)
            if missing:
                raise _refusals.missing(self.owner, missing, advice)

    def _missing(self, given: Sequence[object], named: Mapping[str, object]) -> tuple[str, str]:
        """The first required argument that was not given, and what to say without it; empty if there is none."""
        for position, name, advice in self.required:
            if name not in named and not 0 <= position < len(given):
                return name, advice
        return "", ""

    def _require_rest(self, given: Sequence[object]) -> None:
        if self.rest is None:
            last = len(self.positional) - 1
            advice = next((advice for position, _, advice in self.required if position == last >= 0), "")
            raise _refusals.too_many(self.owner, [name for name, _ in self.positional], len(given), advice)
        name, check = self.rest
        for position, value in enumerate(given[len(self.positional) :]):
            if isinstance(value, list | tuple | set) and not check.admits(value):
                expected = f"{check.expected}: give what is in it one by one"
                raise _refusals.wrong_type(f"{name}[{position}]", value, expected)
            check.require(value, f"{name}[{position}]")


def _demands_of(function: Callable[..., Any], owner: str) -> _Demands:
    hints = get_type_hints(function, include_extras=True)
    parameters = list(inspect.signature(function).parameters.values())[1:]
    kinds = inspect.Parameter
    checks = {
        parameter.name: check_of(hints.get(parameter.name, object))
        for parameter in parameters
        if parameter.kind is not kinds.VAR_KEYWORD
    }
    positional = [parameter.name for parameter in parameters if parameter.kind is kinds.POSITIONAL_OR_KEYWORD]
    rest = [parameter.name for parameter in parameters if parameter.kind is kinds.VAR_POSITIONAL]
    options = [hints[parameter.name] for parameter in parameters if parameter.kind is kinds.VAR_KEYWORD]
    return _Demands(
        owner,
        positional=tuple((name, checks[name]) for name in positional),
        rest=(rest[0], checks[rest[0]]) if rest else None,
        named={
            **{name: check for name, check in checks.items() if name not in rest},
            **{name: check for option in options for name, check in options_of(get_args(option)[0]).items()},
        },
        required=tuple(
            (positional.index(name) if name in positional else -1, name, _advice(hints.get(name)))
            for name in _without_default(parameters)
        ),
    )


def _without_default(parameters: Iterable[inspect.Parameter]) -> Iterable[str]:
    for parameter in parameters:
        if parameter.default is parameter.empty and parameter.kind not in (
            parameter.VAR_KEYWORD,
            parameter.VAR_POSITIONAL,
        ):
            yield parameter.name


def _advice(hint: object) -> str:
    found = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return next((item.advice for item in found if isinstance(item, IfMissing)), "")


_CALL_OPTIONS = {
    "query": "What to search for: a text of 1 byte to 32 KiB, or an `Embedding`.",
    "page_token": "The `next_page_token` of the page before; empty for the first page.",
    "explain": "Whether hits have the components of their scores.",
    "index_wait": "Seconds, 0 to 60, to wait for messages that are not yet embedded; None: the server's 0.25.",
    "token": "The bearer token, if the server requires one.",
    "tenant": "The tenant, if the server requires no token; beside a token, it must be the token's.",
    "agent_id": "The agent that is kept in the records of writes.",
    "run_id": "The agent's run that is kept in the records of writes.",
    "request_id": "The write takes effect once, however often it is made with this id within an hour; None: a new one.",
    "timeout": "Seconds that the call may take; left out: the client's.",
}
"""Options that calls have in common."""


def _documented(function: Callable[..., Any]) -> str | None:
    """The docstring, followed by the options that calls have in common and those of a TypedDict."""
    described = inspect.getdoc(function) or ""
    lines = [f"    {name}: {_CALL_OPTIONS[name]}" for name in function.__annotations__ if name in _CALL_OPTIONS]
    options = [get_args(hint)[0] for hint in function.__annotations__.values() if _is_unpacked(hint)]
    lines += map(_attributes, options)
    return "\n".join([described, "", "Options:", *lines]) if lines else described


def _is_unpacked(hint: object) -> bool:
    return get_origin(hint) is Unpack


def _attributes(options: type) -> str:
    """What the docstring of a TypedDict says of its keys."""
    return (inspect.getdoc(options) or "").partition("Attributes:\n")[2]
