# Derived from remora/_async/conversation.py by tools/derive_sync.py. Do not edit: edit that, and run `make gen`.
"""One conversation: its messages, search, context, steps and working memory."""

import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Literal, Unpack

from remora import _refusals, conversations
from remora._arguments import checked
from remora._backends import synchronous as backend
from remora._bounds import (
    OF_CLIENT,
    Between,
    Count,
    Id,
    IfMissing,
    IndexWait,
    Items,
    Limit,
    RequestId,
    Size,
    Timeout,
)
from remora._status import without_request_id
from remora._sync.calls import LARGEST_PAGE, Calls, page_size
from remora._sync.working_memory import WorkingMemory
from remora._times import TimeBounds, put_bounds, to_duration
from remora.context import (
    MERGES,
    RENDERINGS,
    Context,
    FactOptions,
    Merge,
    Rendering,
    SharedSection,
    facts_to_proto,
    shares_to_proto,
)
from remora.conversations import ConversationFields, ConversationRecord
from remora.edits import Edit
from remora.embeddings import Embedding
from remora.errors import SummaryOutdatedError
from remora.filters import Where, where_to_proto
from remora.messages import (
    Appended,
    AppendedMessage,
    Bound,
    Message,
    MessageLike,
    Messages,
    bound_sequence,
    to_messages,
)
from remora.roles import RoleName
from remora.search import Query, SearchOptions, SearchResult, recall_to_proto, search_request
from remora.short_term import Summary, Window, written_summary
from remora.steps import Step
from remora.tokens import EncodingName, ModelName, encoding_to_proto
from remora.v1 import conversation_pb2, memory_service_pb2
from remora.v1 import conversation_service_pb2 as wire
from remora.v1 import history_service_pb2 as history
from remora.v1.working_memory_pb2 import WorkingMemoryScope

SUMMARY_TRIES = 5
"""How often a summary is written whose messages change meanwhile."""
_EXAMPLE = 'give a message: append({"role": "user", "content": "hello"}); several go into a list'


@checked
class Conversation:
    """A handle on a conversation; making one makes no call. `timeout` is in seconds; left out: the client's."""

    _settled = _refusals.users_handle("memory.conversation(id, user_id=...)")

    def __init__(
        self, calls: Calls, conversation_id: str, user_id: str = "", fields: ConversationFields | None = None
    ) -> None:
        self._calls = calls
        self._fields: ConversationFields = fields or {}
        self.id = conversation_id
        """The conversation's id."""
        self.user_id = user_id
        """Whose messages the handle sees; empty: the conversation's own user's."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r}, user_id={self.user_id!r})"

    def _as_created(self) -> conversation_pb2.Conversation:
        return conversations.to_proto(self.id, self.user_id, self._fields)

    @property
    def working_memory(self) -> WorkingMemory:
        """The conversation's working memory."""
        scope = WorkingMemoryScope(conversation_id=self.id)
        return WorkingMemory(self._calls, scope, self.user_id)

    def append(
        self,
        messages: Annotated[MessageLike | Sequence[MessageLike], IfMissing(_EXAMPLE)],
        *,
        create_if_missing: bool = True,
        request_id: RequestId | None = None,
        timeout: Timeout = OF_CLIENT,
    ) -> Appended:
        """Appends one message or a list of `messages`, all or none; durable and visible when it returns.

        A message is an OpenAI chat message (a mapping, or an object such as openai's ChatCompletionMessage) or a
        `Message`. A mapping may also have the keys of `MessageExtras`, such as `id`, `sent_time` and `metadata`. One
        whose id the user already has here replaces that message. Keys within parts and tool calls, and roles of
        `Role.custom`, are not checked: they come back, and go to a model's provider, as they were given.
        A missing conversation is created with the handle's user and fields, unless `create_if_missing` is False.
        """
        request = wire.AppendMessagesRequest(
            conversation_id=self.id,
            user_id=self.user_id,
            messages=to_messages(messages),
            create_if_missing=self._as_created() if create_if_missing else None,
        )
        response = self._calls.write(self._calls.stubs.conversations.AppendMessages, request, timeout, request_id)
        return Appended(
            messages=tuple(map(AppendedMessage.from_proto, response.messages)),
            revision=response.revision,
            conversation_created=response.conversation_created,
            deleted_messages=response.pruned_messages,
        )

    def messages(
        self,
        limit: Limit | None = 100,
        *,
        roles: Annotated[Collection[RoleName], Items(16)] = (),
        after: Bound | None = None,
        before: Bound | None = None,
        oldest_first: bool = False,
        where: Where = (),
        view: Literal["window", "all"] = "window",
        timeout: Timeout = OF_CLIENT,
        **times: Unpack[TimeBounds],
    ) -> Messages:
        """The newest `limit` messages (the oldest with `oldest_first`; all with None), always in order, oldest first.

        Those that have left the window, if the conversation has a `short_term` policy, are only among them with
        `view="all"`.
        Only those of `roles`, between the sequences or messages `after` and `before` and within the times given, all
        exclusive, and only those whose attributes match `where`.
        Each page of 1,000 has the timeout.
        """
        request = wire.ListMessagesRequest(
            conversation_id=self.id,
            user_id=self.user_id,
            roles=roles,
            after_sequence=bound_sequence(after),
            before_sequence=bound_sequence(before),
            page_order=wire.PAGE_ORDER_OLDEST_FIRST if oldest_first else wire.PAGE_ORDER_NEWEST_FIRST,
            page_size=page_size(limit),
            filter=where_to_proto(where),
            view=wire.MESSAGE_VIEW_ALL if view == "all" else wire.MESSAGE_VIEW_WINDOW,
        )
        put_bounds(times, request)
        method = self._calls.stubs.conversations.ListMessages
        pages = self._calls.collect(method, request, lambda page: page.messages, limit=limit, timeout=timeout)
        ordered = pages if oldest_first else reversed(pages)
        found = list(map(Message.from_proto, itertools.chain.from_iterable(ordered)))
        surplus = 0 if limit is None else max(0, len(found) - limit)
        return Messages(found[: len(found) - surplus] if oldest_first else found[surplus:])

    def search(
        self,
        query: Query | Embedding,
        *,
        page_token: str = "",
        explain: bool = False,
        index_wait: IndexWait | None = None,
        timeout: Timeout = OF_CLIENT,
        **options: Unpack[SearchOptions],
    ) -> SearchResult:
        """The messages of this conversation that answer a text or resemble a vector, best first: a page of `k`.

        The result's `next_page_token` is the `page_token` of the next page.
        """
        request = search_request(query, options, explain=explain, index_wait=index_wait, page_token=page_token)
        request.conversation.CopyFrom(
            memory_service_pb2.ConversationScope(conversation_id=self.id, user_id=self.user_id)
        )
        response = self._calls.read(self._calls.stubs.memory.SearchMessages, request, timeout)
        return SearchResult.from_proto(response)

    def context(
        self,
        max_tokens: Annotated[int, Between(1, 10_000_000)] = 4000,
        *,
        query: Query | Embedding | None = None,
        recall: bool | SearchOptions = True,
        recall_scope: Literal["conversation", "user"] = "conversation",
        recent_messages: Count | None = None,
        encoding: EncodingName | None = None,
        model: ModelName | None = None,
        merge: Merge | None = None,
        rendering: Rendering | None = None,
        system: Annotated[str, Size(1 << 20)] = "",
        allow_partial: bool = False,
        include_unrelated: bool = False,
        facts: bool | FactOptions = False,
        static_facts: bool = False,
        working_memory: bool = False,
        shares: Mapping[SharedSection, Annotated[float, Between(0, 1)]] | None = None,
        index_wait: IndexWait | None = None,
        timeout: Timeout = OF_CLIENT,
    ) -> Context:
        """The system text, facts, recent messages, and older ones that the query recalls, of at most `max_tokens`
        together.

        `query` is a text or a vector; None: the text of the newest `user` message. `recall` says how to search
        (False: not at all), `recall_scope` whether in this conversation or in all of its user's. What the search finds
        and is not relevant to the query is left out, unless `include_unrelated`. `recent_messages` bounds the number of
        recent ones (None: as many as fit). Tokens are those of `encoding` or of a `model`'s encoding, by default
        o200k_base; with a `model`, images are counted by its rule. `merge` says how recalled and recent messages are
        joined, `rendering` whether the context is `messages` (the default), a `transcript`, or messages with a
        `system_prompt` that holds facts and recalled messages as `<memory>`.

        `system` stands first; without it, the newest message of the role `system` or `developer` does. The newest turn,
        from the last message of the role `user` on, is always in, whatever `recent_messages` but 0 is: if the budget
        does not hold it, BudgetTooSmallError names one that does. With `allow_partial`, its longest texts are truncated
        instead, and marked.

        `facts` are what is known of the user (`user.facts`): those that answer the query best; `static_facts` those
        that hold for all users; `working_memory` those of the user and of the conversation. `shares` says in which
        order sections get their room, and which part of the budget each may take at first, from 0 to 1; what is left
        goes to all of them, in the same order.
        """
        request = memory_service_pb2.AssembleContextRequest(
            conversation_id=self.id,
            user_id=self.user_id,
            query=query if isinstance(query, str) else "",
            query_embedding=query.to_proto() if isinstance(query, Embedding) else None,
            max_tokens=max_tokens,
            encoding=encoding_to_proto(encoding, model),
            recent_messages=recent_messages,
            search=recall_to_proto(recall),
            search_user_scope=recall_scope == "user",
            merge=MERGES[merge],
            rendering=RENDERINGS[rendering],
            system=system,
            allow_partial=allow_partial,
            include_unrelated=include_unrelated,
            facts=facts_to_proto(facts),
            static_facts=static_facts,
            working_memory=working_memory,
            shares=shares_to_proto(shares),
            index_wait=None if index_wait is None else to_duration(index_wait),
        )
        response = self._calls.read(self._calls.stubs.memory.AssembleContext, request, timeout)
        return Context.from_proto(response, max_tokens)

    def delete_messages(
        self, message_ids: Id | Collection[Id], *, request_id: RequestId | None = None, timeout: Timeout = OF_CLIENT
    ) -> int:
        """Deletes the messages of the `message_ids`, at most 10,000; returns how many there were.

        Unknown ids are ignored.
        """
        ids = [message_ids] if isinstance(message_ids, str) else message_ids
        request = wire.DeleteMessagesRequest(conversation_id=self.id, user_id=self.user_id, message_ids=ids)
        response = self._calls.write(self._calls.stubs.conversations.DeleteMessages, request, timeout, request_id)
        return response.deleted_messages

    def clear(self, *, request_id: RequestId | None = None, timeout: Timeout = OF_CLIENT) -> int:
        """Deletes all messages and steps of the user; returns how many messages. Working memory stays."""
        request = wire.ClearMessagesRequest(conversation_id=self.id, user_id=self.user_id)
        response = self._calls.write(self._calls.stubs.conversations.ClearMessages, request, timeout, request_id)
        return response.deleted_messages

    def edit(
        self,
        edits: Annotated[Collection[Edit], Items(1000, least=1)],
        *,
        allow_missing: bool = False,
        request_id: RequestId | None = None,
        timeout: Timeout = OF_CLIENT,
    ) -> Appended:
        """Applies edits in order, all or none; each sees the result of those before it.

        Replacing or removing a missing id raises MessageNotFoundError, unless `allow_missing`.
        """
        request = wire.EditMessagesRequest(
            conversation_id=self.id,
            user_id=self.user_id,
            edits=[edit.to_proto() for edit in edits],
            allow_missing=allow_missing,
        )
        response = self._calls.write(self._calls.stubs.conversations.EditMessages, request, timeout, request_id)
        return Appended(
            messages=tuple(map(AppendedMessage.from_proto, response.messages)),
            revision=response.revision,
            deleted_messages=response.deleted_messages + response.pruned_messages,
        )

    def get(self, *, timeout: Timeout = OF_CLIENT) -> ConversationRecord:
        """The conversation as it is stored."""
        request = wire.GetConversationRequest(conversation_id=self.id, user_id=self.user_id)
        response = self._calls.read(self._calls.stubs.conversations.GetConversation, request, timeout)
        return ConversationRecord.from_proto(response.conversation)

    def update(
        self,
        *,
        request_id: RequestId | None = None,
        timeout: Timeout = OF_CLIENT,
        **changes: Unpack[ConversationFields],
    ) -> None:
        """Replaces the given fields; with none, only sets update_time."""
        request = wire.UpdateConversationRequest(
            conversation=conversations.to_proto(self.id, "", changes), user_id=self.user_id
        )
        request.update_mask.paths.extend(changes)
        self._calls.write(self._calls.stubs.conversations.UpdateConversation, request, timeout, request_id)

    def window(self, *, timeout: Timeout = OF_CLIENT) -> Window:
        """What is in the window; see `short_term`."""
        request = wire.GetWindowRequest(conversation_id=self.id, user_id=self.user_id)
        response = self._calls.read(self._calls.stubs.conversations.GetWindow, request, timeout)
        return Window.from_proto(response)

    def summarize(
        self,
        write: backend.SummaryWriter,
        *,
        keep_messages: Annotated[int, Between(1, 10_000)] | None = None,
        if_over: bool = False,
        model: Annotated[str, Size(256)] = "",
        timeout: Timeout = OF_CLIENT,
    ) -> Summary | None:
        """Summarises all messages but the newest with your own model; returns the summary, None if there is none.

        Messages that are appended meanwhile do not matter; what is summarised is planned again if another one changes.

        Args:
            write: What writes a summary, given what to do and what to summarise, which names the summary so far:
                `lambda instruction, text: llm(instruction, text)`.
            keep_messages: How many of the newest messages stay as they were said; None: as the policy says, else 10.
            if_over: Whether to do so only if the window has more tokens than the policy allows.
            model: What wrote it, which is recorded.
            timeout: Seconds of each call.
        """
        plan = wire.PlanSummaryRequest(
            conversation_id=self.id, user_id=self.user_id, keep_messages=keep_messages or 0, if_over=if_over
        )
        tries = SUMMARY_TRIES
        while True:
            planned = self._calls.read(self._calls.stubs.conversations.PlanSummary, plan, timeout)
            if not planned.HasField("cover"):
                break
            text = written_summary(backend.written(write, planned.instruction, planned.text))
            request = wire.CommitSummaryRequest(
                conversation_id=self.id, user_id=self.user_id, cover=planned.cover, text=text, model=model
            )
            try:
                with without_request_id():
                    self._calls.write(self._calls.stubs.conversations.CommitSummary, request, timeout)
            except SummaryOutdatedError:
                tries -= 1
                if not tries:
                    raise
                continue
            if not planned.more:
                break
        return (self.window(timeout=timeout)).summary

    def delete(
        self, *, allow_missing: bool = False, request_id: RequestId | None = None, timeout: Timeout = OF_CLIENT
    ) -> int:
        """Deletes the conversation with all that belongs to it; returns how many messages, of all users.

        A missing conversation raises ConversationNotFoundError, unless `allow_missing`.
        """
        request = wire.DeleteConversationRequest(
            conversation_id=self.id, user_id=self.user_id, allow_missing=allow_missing
        )
        response = self._calls.write(self._calls.stubs.conversations.DeleteConversation, request, timeout, request_id)
        return response.deleted_messages

    def save_steps(
        self,
        steps: Annotated[Collection[Step], Items(1000, least=1)],
        *,
        request_id: RequestId | None = None,
        timeout: Timeout = OF_CLIENT,
    ) -> None:
        """Saves up to 1,000 steps, all or none; a step whose id is known is replaced. The conversation must exist."""
        request = history.SaveStepsRequest(steps=[step.to_proto(self.id, self.user_id) for step in steps])
        self._calls.write(self._calls.stubs.history.SaveSteps, request, timeout, request_id)

    def steps(
        self, *, operation_id: Id | None = None, limit: Count | None = None, timeout: Timeout = OF_CLIENT
    ) -> list[Step]:
        """The steps of the operation `operation_id` or of all, in order: the newest `limit`, or all.

        Each page of 1,000 has the timeout.
        """
        request = history.ListStepsRequest(
            conversation_id=self.id,
            user_id=self.user_id,
            operation_id=operation_id or "",
            limit=limit or 0,
            page_size=LARGEST_PAGE,
        )
        method = self._calls.stubs.history.ListSteps
        steps = self._calls.items(method, request, lambda page: page.steps, limit=limit, timeout=timeout)
        return list(map(Step.from_proto, steps))
