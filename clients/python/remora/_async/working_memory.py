"""The working memory of a conversation or a user."""
# ruff: noqa: ASYNC109 - the deadline is sent to the server, which gives up at it, too

from typing import Annotated, Any

from remora._arguments import checked
from remora._async.calls import AsyncCalls
from remora._bounds import OF_CLIENT, Name, RequestId, Timeout
from remora.v1 import memory_service_pb2 as wire
from remora.v1.working_memory_pb2 import WorkingMemoryScope
from remora.working_memory import MOST_TEMPLATE, Form, Mode, WorkingMemoryContent, content_bytes


@checked
class AsyncWorkingMemory:
    """The working memory of a conversation, with which it is deleted, or of a user."""

    def __init__(self, calls: AsyncCalls, scope: WorkingMemoryScope, user_id: str, form: Form | None = None) -> None:
        self._calls = calls
        self._scope = scope
        self._user_id = user_id
        self._form = form or Form()

    def __repr__(self) -> str:
        field = self._scope.WhichOneof("owner") or "user_id"
        return f"{type(self).__name__}({field}={getattr(self._scope, field)!r})"

    def using(
        self, *, template: Annotated[str, Name(MOST_TEMPLATE)] | None = None, schema: dict[str, Any] | None = None
    ) -> "AsyncWorkingMemory":
        """The same working memory with a form, which `instructions` describes and edits follow; it makes no call.

        The form is the handle's: the server does not keep it.

        Args:
            template: Markdown with the headings that the content has. Edits are text.
            schema: A JSON Schema, such as Pydantic's `Model.model_json_schema()`. Edits are JSON, and what each comes
                to must match it. With a template: InvalidFieldError.
        """
        return AsyncWorkingMemory(self._calls, self._scope, self._user_id, Form(template or "", schema))

    async def instructions(self, *, timeout: Timeout = OF_CLIENT) -> str:
        """Text for the system prompt of an agent: how to keep the working memory, its form, and its content now.

        Raises UnicodeDecodeError if the content is not UTF-8, which only `set` can store.
        """
        return self._form.instructions(await self.get(timeout=timeout))

    async def get(self, *, timeout: Timeout = OF_CLIENT) -> WorkingMemoryContent | None:
        """The content; None if there is none."""
        request = wire.GetWorkingMemoryRequest(scope=self._scope, user_id=self._user_id)
        method = self._calls.stubs.memory.GetWorkingMemory
        return WorkingMemoryContent.from_proto(await self._calls.read(method, request, timeout))

    async def set(self, content: Any, *, request_id: RequestId | None = None, timeout: Timeout = OF_CLIENT) -> None:  # noqa: ANN401 - whatever JSON holds
        """Replaces the content: text, bytes, or what JSON can hold, up to 1 MiB. The conversation must exist.

        The content is not checked against a template or a schema; `edit` checks it.
        """
        request = wire.SetWorkingMemoryRequest(scope=self._scope, content=content_bytes(content), user_id=self._user_id)
        await self._calls.write(self._calls.stubs.memory.SetWorkingMemory, request, timeout, request_id)

    async def edit(
        self,
        content: Any,  # noqa: ANN401 - whatever JSON holds
        *,
        mode: Mode = "replace",
        schema: dict[str, Any] | None = None,
        request_id: RequestId | None = None,
        timeout: Timeout = OF_CLIENT,
    ) -> None:
        """Replaces the content, or adds to it, in one step: of two that append at once, none is lost.

        A text is Markdown and follows what was there behind an empty line; it is not appended to an object or an array
        of JSON: InvalidFieldError. Anything else is JSON and is merged: objects member by member, at every depth;
        arrays are joined, and of their strings, numbers, booleans and nulls each is kept once; everything else is
        replaced. What was there and is not JSON is replaced.

        Args:
            content: Text, or what JSON can hold; with a schema, a text is JSON, too. Up to 1 MiB.
            mode: `replace` or `append`.
            schema: A JSON Schema for this edit; None: that of `using`, if there is one. What the edit comes to must
                match it; otherwise InvalidFieldError says where it does not, and nothing is written.
            request_id: Makes the edit idempotent.
            timeout: Seconds.
        """
        request = self._form.edit_request(content, mode, schema)
        request.scope.CopyFrom(self._scope)
        request.user_id = self._user_id
        await self._calls.write(self._calls.stubs.memory.EditWorkingMemory, request, timeout, request_id)

    async def delete(self, *, request_id: RequestId | None = None, timeout: Timeout = OF_CLIENT) -> bool:
        """Deletes the content; returns False if there was none."""
        request = wire.DeleteWorkingMemoryRequest(scope=self._scope, user_id=self._user_id)
        response = await self._calls.write(self._calls.stubs.memory.DeleteWorkingMemory, request, timeout, request_id)
        return response.deleted
