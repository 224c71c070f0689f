"""`help()` names every option of a call and every field of a value."""

import dataclasses
import inspect
import pydoc
import re
import typing
from importlib.metadata import version

import pytest

import remora
from remora import errors

HANDLES = [
    remora.Remora, remora.Conversation, remora.User, remora.WorkingMemory,
    remora.Workflows, remora.History, remora.Vectors,
    remora.AsyncRemora, remora.AsyncConversation, remora.AsyncUser, remora.AsyncWorkingMemory,
    remora.AsyncWorkflows, remora.AsyncHistory, remora.AsyncVectors,
]  # fmt: skip
CALLS = [
    (kind, name)
    for kind in HANDLES
    for name, member in vars(kind).items()
    if not name.startswith("_") and not isinstance(member, property)
]
VALUES = [
    value
    for value in (getattr(remora, name) for name in remora.__all__)
    if dataclasses.is_dataclass(value) or typing.is_typeddict(value)
]


def options_of(call: object) -> list[str]:
    """The names that a caller can give."""
    hints = typing.get_type_hints(call)
    parameters = inspect.signature(call).parameters.values()  # type: ignore[arg-type] # a function
    options = [parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD]
    for parameter in parameters:
        if parameter.kind is parameter.VAR_KEYWORD:
            options += typing.get_type_hints(typing.get_args(hints[parameter.name])[0])
    return [option for option in options if option not in ("self", "cls")]


@pytest.mark.parametrize(("kind", "name"), CALLS, ids=lambda value: getattr(value, "__name__", value))
def test_a_call_names_its_options(kind: type, name: str) -> None:
    call = getattr(kind, name)

    unnamed = [option for option in options_of(call) if option not in (inspect.getdoc(call) or "")]

    assert unnamed == []


def test_there_are_calls_and_values_to_look_at() -> None:
    assert len(CALLS) > 60
    assert len(VALUES) > 15


@pytest.mark.parametrize("value", VALUES, ids=lambda value: value.__name__)
def test_a_value_names_its_fields(value: type) -> None:
    described = inspect.getdoc(value) or ""

    assert [field for field in value.__annotations__ if f"{field}: " not in described and field[0] != "_"] == []


def test_help_shows_the_options_of_a_search() -> None:
    shown = re.sub(r".\x08", "", pydoc.render_doc(remora.Conversation.search))

    assert "k: How many hits at most, 1 to 1,000. Default 10." in shown
    assert "timeout: Seconds that the call may take; left out: the client's." in shown


def test_an_error_names_what_it_carries() -> None:
    carried = vars(errors.RemoraError("failed"))

    assert [name for name in carried if f"{name}: " not in (errors.RemoraError.__doc__ or "")] == []


def test_the_version_is_the_packages() -> None:
    assert remora.__version__ == version("remora")


@pytest.mark.parametrize("kind", [remora.Remora, remora.AsyncRemora])
def test_a_handle_shows_what_it_is_of(kind: type[remora.Remora | remora.AsyncRemora]) -> None:
    prefix = "Async" if kind is remora.AsyncRemora else ""
    client = kind("unix:/nowhere")
    chat, user = client.conversation("c", user_id="sarah"), client.user("sarah")
    handles = (
        chat.working_memory, user.working_memory, user.facts, user.memory_items, client.receipts, client.history,
        client.workflows,
    )  # fmt: skip

    assert [repr(handle) for handle in handles] == [
        f"{prefix}WorkingMemory(conversation_id='c')",
        f"{prefix}WorkingMemory(user_id='sarah')",
        f"{prefix}Facts(user_id='sarah')",
        f"{prefix}MemoryItems(user_id='sarah')",
        f"{prefix}Receipts()",
        f"{prefix}History()",
        f"{prefix}Workflows()",
    ]


def test_help_of_append_says_what_is_not_checked() -> None:
    shown = " ".join((remora.Conversation.append.__doc__ or "").split())

    assert "Keys within parts and tool calls, and roles of `Role.custom`, are not checked" in shown
