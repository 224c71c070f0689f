"""What the toolkit knows of the request that a memory is asked in."""

from collections.abc import Iterator, Sequence
from typing import Any

from nat.builder.context import Context

OWN_NAMES = ("user_first_name", "user_last_name", "user_email")
"""Attributes of some versions' Context; others have them as headers."""


def current_user() -> str | None:
    """The user whom the toolkit has identified."""
    return Context.get().user_id


def current_run() -> str | None:
    """The run of the workflow."""
    return Context.get().workflow_run_id


def user_context(headers: Sequence[str]) -> dict[str, Any]:
    """Whose request this is: name, e-mail, conversation and run, and the values of these headers, as far as known."""
    return dict(_known(Context.get(), headers))


def _known(context: Context, headers: Sequence[str]) -> Iterator[tuple[str, Any]]:
    given = getattr(context.metadata, "headers", None) or {}
    for name in OWN_NAMES:
        value = getattr(context, name, None) or given.get(name.replace("_", "-"))
        if value:
            yield name.removeprefix("user_"), value
    if context.conversation_id:
        yield "conversation_id", context.conversation_id
    if context.workflow_run_id:
        yield "run_id", context.workflow_run_id
    kept = {name.lower(): given[name] for name in headers if name in given}
    if kept:
        yield "headers", kept
