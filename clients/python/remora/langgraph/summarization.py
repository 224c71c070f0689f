"""A LangGraph node that keeps what a model is given short: messages go to a conversation, and its window comes back."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, cast, overload

from langchain_core.language_models import LanguageModelLike
from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage, RemoveMessage, SystemMessage
from langchain_core.runnables import Runnable, RunnableConfig

from remora import AsyncConversation, AsyncRemora, Conversation, Remora, _refusals
from remora.errors import ConversationNotFoundError, InvalidFieldError
from remora.langgraph._server import Options, Server
from remora.langgraph.messages import REMOVE_ALL_MESSAGES
from remora.messages import Message
from remora.short_term import KEEP_MESSAGES, SUMMARY_PREFIX, Summarize, Summary
from remora.v1 import conversation_service_pb2

IS_SUMMARY = {"lc_source": "summarization"}
"""What LangChain marks its own summaries with."""
MOST_MESSAGES = 1_000
"""Messages of one append."""
SUMMARY_SHARE, MOST_SUMMARY_TOKENS = 4, 1_000
"""A summary has at most one in so many of a policy's tokens if nothing else is said, and at most so many."""
NEWEST = 100
"""Of how many messages of a conversation it is seen first whether they are among the state's."""


class SummarizationNode(Runnable[Any, dict[str, Any]]):
    """A node that gives a model the newest messages of a thread, and a summary of those before them.

    New messages of the state are appended to the conversation of the thread's id. Its window comes back under
    `output_messages_key`: the newest system message, the summary as a message of the user, and the state's own messages
    that have not left the window. What has left it stays in the conversation, and is recalled. A call of tools and its
    results are never parted.

    With `model`, that model writes the summaries, before the node returns. Without one, the server does, in the
    background: until a summary is there, the window stays as it was.
    """

    def __init__(
        self,
        endpoint: str | None = None,
        *,
        max_tokens: int,
        model: LanguageModelLike | None = None,
        max_summary_tokens: int | None = None,
        keep_messages: int = KEEP_MESSAGES,
        input_messages_key: str = "messages",
        output_messages_key: str = "summarized_messages",
        name: str = "summarization",
        token: str | None = None,
        tenant: str | None = None,
        timeout: float = 10.0,
    ) -> None:
        """Does not connect yet.

        Args:
            endpoint: `unix:/path` or `host:port`; if None, $REMORA_ENDPOINT, else the usual address of this machine.
            max_tokens: With more tokens, exactly counted, its summary included, the window is summarised.
            model: What writes the summaries; None: the server.
            max_summary_tokens: How long a summary may be; None: a quarter of `max_tokens`, at most 1,000. A `model` is
                told so.
            keep_messages: How many of the newest messages are not summarised; where these alone are too long, a
                `model` summarises some of them, too.
            input_messages_key: Where the state has its messages, with ids, as `add_messages` gives them.
            output_messages_key: Where the node puts those of the window; if it is the same, they replace the others.
            name: The node's name.
            token: What authenticates.
            tenant: The tenant, if the server requires no token.
            timeout: Seconds of each call of the server.
        """
        if model is not None and not hasattr(model, "invoke"):
            raise _refusals.wrong_type("model", model, "a model of LangChain")
        self.name = name
        if max_summary_tokens is None:  # as the server would say, so that the policy is the same when it is read
            max_summary_tokens = max(1, min(max_tokens // SUMMARY_SHARE, MOST_SUMMARY_TOKENS))
        self.policy = Summarize(max_tokens, max_summary_tokens, keep_messages, by_client=model is not None)
        self.model = model
        self.input_messages_key = input_messages_key
        self.output_messages_key = output_messages_key
        self._server = Server(Options(endpoint, token, tenant, timeout))

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_kwargs: Any) -> dict[str, Any]:  # noqa: A002, ANN401 - LangChain's
        """The state's update."""
        messages = self._messages(input)
        chat = self._conversation(self._server.blocking.client, config)
        if not self._append(chat, messages):
            return self._update(messages, (), None)
        if self.model is not None and _may_be_over(chat._calls.read(*_plan(chat))):  # noqa: SLF001 - of this package
            for keep in _ever_fewer(self.policy.keep_messages):
                chat.summarize(self._write, keep_messages=keep, if_over=True, model=self._model_name)
        window = chat.messages(None)  # before its summary: what that covers as well is left out
        return self._update(messages, window, chat.window().summary)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_kwargs: Any) -> dict[str, Any]:  # noqa: A002, ANN401 - LangChain's
        """The state's update."""
        messages = self._messages(input)
        chat = self._conversation(self._server.concurrent.client, config)
        if not await self._aappend(chat, messages):
            return self._update(messages, (), None)
        if self.model is not None and _may_be_over(await chat._calls.read(*_plan(chat))):  # noqa: SLF001
            for keep in _ever_fewer(self.policy.keep_messages):
                await chat.summarize(self._awrite, keep_messages=keep, if_over=True, model=self._model_name)
        window = await chat.messages(None)
        return self._update(messages, window, (await chat.window()).summary)

    def close(self) -> None:
        """Closes the connection that threads use."""
        self._server.close()

    async def aclose(self) -> None:
        """Closes the connection of the running event loop, and that of threads."""
        await self._server.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def _messages(self, state: object) -> list[AnyMessage]:
        """Those of a state, which is a mapping or has attributes."""
        key = self.input_messages_key
        found = state.get(key) if isinstance(state, Mapping) else getattr(state, key, None)
        if found is None:
            raise ValueError(f"the state has no {key!r}")
        if any(not message.id for message in found):
            raise ValueError(f"messages of {key!r} have no id: use the reducer add_messages")
        return list(found)

    @overload
    def _conversation(self, client: Remora, config: RunnableConfig | None) -> Conversation: ...

    @overload
    def _conversation(self, client: AsyncRemora, config: RunnableConfig | None) -> AsyncConversation: ...

    def _conversation(
        self, client: Remora | AsyncRemora, config: RunnableConfig | None
    ) -> Conversation | AsyncConversation:
        """That of the thread which a config names."""
        configurable = (config or {}).get("configurable") or {}
        if configurable.get("thread_id") is None:
            raise ValueError("the config has no thread_id: invoke the graph with configurable={'thread_id': ...}")
        user_id = str(configurable.get("user_id") or "") or None
        return client.conversation(str(configurable["thread_id"]), user_id=user_id, short_term=self.policy)

    def _append(self, chat: Conversation, messages: Sequence[AnyMessage]) -> bool:
        """Append what the conversation does not have, which makes it, with the policy, where there is none. Returns
        whether there is one now.
        """
        try:
            new = unsaid(messages, _ids(chat.messages(NEWEST, view="all")))
            if new is None:
                new = unsaid(messages, _ids(chat.messages(None, view="all")), everything=True)
            if chat.get().short_term != self.policy:
                chat.update(short_term=self.policy)
        except ConversationNotFoundError:
            new = unsaid(messages, (), everything=True)
            if not new:
                return False
        for part in _in_requests(new or ()):
            chat.append(part)
        return True

    async def _aappend(self, chat: AsyncConversation, messages: Sequence[AnyMessage]) -> bool:
        try:
            new = unsaid(messages, _ids(await chat.messages(NEWEST, view="all")))
            if new is None:
                new = unsaid(messages, _ids(await chat.messages(None, view="all")), everything=True)
            if (await chat.get()).short_term != self.policy:
                await chat.update(short_term=self.policy)
        except ConversationNotFoundError:
            new = unsaid(messages, (), everything=True)
            if not new:
                return False
        for part in _in_requests(new or ()):
            await chat.append(part)
        return True

    @property
    def _model_name(self) -> str:
        """What is recorded as the summary's author."""
        model = getattr(self.model, "bound", self.model)  # of model.bind(...)
        return str(getattr(model, "model_name", None) or getattr(model, "model", None) or type(model).__name__)[:256]

    @property
    def _writer(self) -> LanguageModelLike:
        return cast("LanguageModelLike", self.model)

    def _asked(self, instruction: str, text: str) -> list[BaseMessage]:
        return [SystemMessage(instruction), HumanMessage(text)]

    def _write(self, instruction: str, text: str) -> str:
        return _text_of(self._writer.invoke(self._asked(instruction, text)))

    async def _awrite(self, instruction: str, text: str) -> str:
        return _text_of(await self._writer.ainvoke(self._asked(instruction, text)))

    def _update(
        self, messages: Sequence[AnyMessage], window: Sequence[Message], summary: Summary | None
    ) -> dict[str, Any]:
        """The state's update: what of the state's messages is in a window, behind the summary."""
        covered = 0 if summary is None else summary.covers_through_sequence
        left = [message for message in window if message.sequence > covered or message.role == "system"]
        found = within(messages, {message.id for message in left}, summary)
        if self.output_messages_key == self.input_messages_key:
            found = [RemoveMessage(REMOVE_ALL_MESSAGES), *found]
        return {self.output_messages_key: found}


def unsaid(messages: Sequence[AnyMessage], known: Collection[str], *, everything: bool = False) -> list[Message] | None:
    """Those behind the last one that a conversation has, without summaries. `known` are the ids of its newest messages,
    or of `everything`; None where none of the state's messages is among the newest.
    """
    said = [at for at, message in enumerate(messages) if message.id in known]
    if not said and known and not everything:
        return None
    behind = messages[said[-1] + 1 if said else 0 :]
    return [_kept(message) for message in behind if not _is_summary(message)]


def _kept(message: AnyMessage) -> Message:
    """A message to append; without an artifact that JSON cannot hold. The state keeps it, and no model is shown it."""
    try:
        return Message.of(message, id=str(message.id))
    except InvalidFieldError:
        if getattr(message, "artifact", None) is None:
            raise
        return Message.of(message.model_copy(update={"artifact": None}), id=str(message.id))


def within(messages: Sequence[AnyMessage], window: Collection[str], summary: Summary | None) -> list[BaseMessage]:
    """The newest system message, the summary, and the state's messages from the first one on that is in a window."""
    said = [message for message in messages if not _is_summary(message)]
    chat = [message for message in said if message.type != "system"]
    first = next((at for at, message in enumerate(chat) if message.id in window), 0)
    system = [message for message in said if message.type == "system"][-1:]
    return [*system, *([] if summary is None else [_message_of(summary)]), *chat[first:]]


def _message_of(summary: Summary) -> HumanMessage:
    made = f"remora-summary-{summary.covers_through_sequence}"
    return HumanMessage(SUMMARY_PREFIX + summary.text, id=made, additional_kwargs=dict(IS_SUMMARY))


def _is_summary(message: BaseMessage) -> bool:
    return message.additional_kwargs.items() >= IS_SUMMARY.items()


def _ids(messages: Iterable[Message]) -> set[str]:
    return {message.id for message in messages}


def _plan(chat: Conversation | AsyncConversation) -> tuple[Any, conversation_service_pb2.PlanSummaryRequest]:
    """The call that says whether a window is too long: then it names what a summary of all but one message covers."""
    request = conversation_service_pb2.PlanSummaryRequest(
        conversation_id=chat.id, user_id=chat.user_id, keep_messages=1, if_over=True
    )
    return chat._calls.stubs.conversations.PlanSummary, request  # noqa: SLF001 - of this package


def _may_be_over(planned: conversation_service_pb2.PlanSummaryResponse) -> bool:
    return planned.HasField("cover")


def _ever_fewer(keep: int) -> Iterator[int]:
    """That many, half of them, and so on to 1: the newest messages alone may be too long."""
    while keep:
        yield keep
        keep //= 2


def _in_requests(messages: Sequence[Message]) -> Iterator[Sequence[Message]]:
    """As many as one append takes."""
    for at in range(0, len(messages), MOST_MESSAGES):
        yield messages[at : at + MOST_MESSAGES]


def _text_of(answer: object) -> str:
    """What a chat model, or one of texts, wrote."""
    return str(answer.text) if isinstance(answer, BaseMessage) else str(answer)
