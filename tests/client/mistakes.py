"""Mistakes that people make in calls, with the one class and the one sentence that each is answered with.

`python -m tests.client.mistakes` prints them as a table. In the code of each, `memory` is a client, `chat` a
conversation of the user ana, and `guarded` the endpoint of a server that requires tokens.
"""

import sys
from typing import NamedTuple

from remora.errors import (
    BudgetTooSmallError,
    ClientClosedError,
    CollectionNotFoundError,
    ConversationExistsError,
    ConversationNotFoundError,
    HistoryEntryNotFoundError,
    InvalidFieldError,
    MessageNotFoundError,
    RemoraError,
    RequestIdReusedError,
    RequestTooLargeError,
    TenantMismatchError,
    UnauthenticatedError,
    UnknownFieldError,
    WorkflowRunNotFoundError,
    WrongTypeError,
)

_EXAMPLE = '{"role": "user", "content": "hello"}'
_NO_MESSAGE = f"it must be a dict such as {_EXAMPLE}, a Message or a chat object"
_ROLE = "which no model knows; did you mean 'user'? (A role of your own is"


class Mistake(NamedTuple):
    """A call, the class of the exception and its text."""

    code: str
    kind: type[RemoraError]
    sentence: str


SCOPES = (
    Mistake(
        'memory.search("PIN")',
        InvalidFieldError,
        "Remora.search() needs user_id; search_all_users() searches the messages of all users",
    ),
    Mistake(
        'memory.search("PIN", user="ana")',
        UnknownFieldError,
        "Remora.search() has no option 'user'; did you mean 'user_id'?",
    ),
    Mistake('memory.search("PIN", user_id="")', InvalidFieldError, "user_id is empty; it must have 1 to 512 bytes"),
    Mistake('Remora(tenant=" ")', InvalidFieldError, "tenant is ' '; it must have more than white space"),
    Mistake('memory.search("PIN", user_id=None)', WrongTypeError, "user_id is None; it must be a str"),
    Mistake(
        'memory.search_all_users("PIN", user_id="ana")',
        UnknownFieldError,
        "Remora.search_all_users() has no option 'user_id'; it has explain, index_wait, k, page_token, profile, query, "
        "received_after, received_before, recency_half_life, roles, sent_after, sent_before, threshold, timeout, "
        "weights and where",
    ),
    Mistake(
        'memory.conversation("c", user="ana")',
        UnknownFieldError,
        "Remora.conversation() has no option 'user'; did you mean 'user_id'?",
    ),
    Mistake('memory.user("")', InvalidFieldError, "user_id is empty; it must have 1 to 512 bytes"),
    Mistake(
        'memory.list_conversations(user_id="")', InvalidFieldError, "user_id is empty; it must have 1 to 512 bytes"
    ),
    Mistake('memory.export_records(user_id="")', InvalidFieldError, "user_id is empty; it must have 1 to 512 bytes"),
    Mistake(
        'chat.context(recall_scope="tenant")',
        InvalidFieldError,
        "recall_scope is 'tenant'; it must be 'conversation' or 'user'",
    ),
    Mistake(
        'Remora(guarded, token="ana\'s", tenant="bob").status(timeout=300)',
        TenantMismatchError,
        "the token is not of the tenant 'bob': leave the name out, or give that tenant's token",
    ),
    Mistake(
        'Remora(guarded, token="nobody\'s").status(timeout=300)',
        UnauthenticatedError,
        "the token is none that the server knows; `token=` or $REMORA_TOKEN gives one",
    ),
    Mistake(
        "Remora(guarded).status(timeout=300)",
        UnauthenticatedError,
        "a token is needed: metadata `authorization: Bearer <token>`; `token=` or $REMORA_TOKEN gives one",
    ),
    Mistake('Remora(tenant="")', InvalidFieldError, "tenant is empty; give one, or leave it out"),
    Mistake('Remora(token="")', InvalidFieldError, "token is empty; give one, or leave it out"),
)
"""Mistakes that might widen what a call reaches."""

CLIENTS = (
    Mistake(
        'Remora("http://localhost:50051")',
        InvalidFieldError,
        "endpoint is 'http://localhost:50051'; it must be unix:/path or host:port; did you mean 'localhost:50051'?",
    ),
    Mistake(
        'Remora("localhost")',
        InvalidFieldError,
        "endpoint is 'localhost'; it must be unix:/path or host:port; add the port: 'localhost:7411', "
        "if that is where it listens",
    ),
    Mistake(
        'Remora("/run/remora.sock")',
        InvalidFieldError,
        "endpoint is '/run/remora.sock'; it must be unix:/path or host:port; did you mean 'unix:/run/remora.sock'?",
    ),
    Mistake(
        'Remora("unix://run/remora.sock")',
        InvalidFieldError,
        "endpoint is 'unix://run/remora.sock'; it must be unix:/path or host:port; did you mean "
        "'unix:/run/remora.sock'?",
    ),
    Mistake(
        'Remora("localhost:99999")',
        InvalidFieldError,
        "endpoint is 'localhost:99999'; it must be unix:/path or host:port; a port is a number from 1 to 65,535",
    ),
    Mistake(
        'Remora("[::1:50051")',
        InvalidFieldError,
        "endpoint is '[::1:50051'; it must be unix:/path or host:port; did you mean '[::1]:50051'?",
    ),
    Mistake(
        'Remora("")',
        InvalidFieldError,
        "endpoint is ''; it must be unix:/path or host:port; leave it out for the usual one",
    ),
    Mistake(
        'Remora.start(":memory")',
        InvalidFieldError,
        "data is ':memory'; did you mean ':memory:'? The directory is './:memory'",
    ),
    *(
        Mistake(
            f"Remora.start({data!r})",
            InvalidFieldError,
            f"data is {data!r}; Remora(endpoint={endpoint!r}) connects to a server; the directory is './{data}'",
        )
        for data, endpoint in (
            ("localhost:7441", "localhost:7441"),
            ("unix:/run/remora.sock", "unix:/run/remora.sock"),
            ("http://localhost:7441", "localhost:7441"),
            ("http://localhost", "host:port"),
        )
    ),
    Mistake("Remora(timeout=None)", WrongTypeError, "timeout is None; it must be a number"),
    Mistake(
        'chat.search("PIN", timeout=None)',
        WrongTypeError,
        "timeout is None; it must be a number or left out, which stands for the client's",
    ),
    Mistake(
        "chat.append(HELLO, timeout=None)",
        WrongTypeError,
        "timeout is None; it must be a number or left out, which stands for the client's",
    ),
    Mistake("memory.status(timeout=0)", InvalidFieldError, "timeout is 0; it must be a finite number above 0"),
    Mistake("Remora(timeout=0)", InvalidFieldError, "timeout is 0; it must be a finite number above 0"),
    Mistake(
        "Remora(timeout=timedelta(seconds=2))",
        WrongTypeError,
        "timeout is datetime.timedelta(seconds=2) (a timedelta); it must be a number: its total_seconds() is one",
    ),
    Mistake('Remora(host="h")', UnknownFieldError, "Remora() has no option 'host'; did you mean 'endpoint'?"),
    Mistake('Remora(tenant="müller")', InvalidFieldError, "tenant must be printable ASCII"),
    Mistake("Remora(token=5)", WrongTypeError, "token is an int; it must be a str or None"),
    Mistake("Remora('localhost:1', tls=True)", WrongTypeError, "tls is True (a bool); it must be a Tls or None"),
    Mistake(
        "Remora('unix:/s', tls=Tls())",
        InvalidFieldError,
        "tls is for host:port, and the endpoint is 'unix:/s'; leave it out",
    ),
    Mistake("Tls(cert_file='me.pem')", InvalidFieldError, "cert_file needs key_file"),
    Mistake("closed.status()", ClientClosedError, "the client is closed; make another"),
)
"""Mistakes in making a client."""

MESSAGES = (
    Mistake('chat.append("hello")', WrongTypeError, f"the message is 'hello' (a str); {_NO_MESSAGE}"),
    Mistake("chat.append(5)", WrongTypeError, f"the message is 5 (an int); {_NO_MESSAGE}"),
    Mistake('chat.append([HELLO, "hi"])', WrongTypeError, f"messages[1]: the message is 'hi' (a str); {_NO_MESSAGE}"),
    Mistake(
        "chat.append(count())",
        WrongTypeError,
        "the message is count(0) (a count); it must be a dict such as "
        f"{_EXAMPLE}, a Message or a chat object: list() makes a list of what it gives",
    ),
    Mistake(
        "chat.append(Message)",
        WrongTypeError,
        f"the message is <class 'remora.messages.Message'> (a type); {_NO_MESSAGE}",
    ),
    Mistake("chat.append(Unshowable())", WrongTypeError, f"the message is <Unshowable> (an Unshowable); {_NO_MESSAGE}"),
    Mistake(
        'chat.append({"role": "user", "content": "hi", "name": 7})',
        WrongTypeError,
        "name is 7 (an int); it must be a str",
    ),
    Mistake("chat.append([])", InvalidFieldError, "messages has 0 messages; give 1 to 1,000 at once"),
    Mistake(
        'chat.append(role="user", content="hi")',
        UnknownFieldError,
        f"Conversation.append() has no option 'role'; give a message: append({_EXAMPLE}); several go into a list",
    ),
    Mistake(
        'chat.append("user", "hi")',
        WrongTypeError,
        "Conversation.append() got 2 arguments without a name; it takes at most 1 (messages): give a message: "
        f"append({_EXAMPLE}); several go into a list",
    ),
    Mistake(
        'chat.append({"role": "usr", "content": "hi"})',
        InvalidFieldError,
        f"role is 'usr', {_ROLE} Role.custom('usr'))",
    ),
    Mistake('Message("User", "hi")', InvalidFieldError, f"role is 'User', {_ROLE} Role.custom('User'))"),
    Mistake(
        'chat.append({"role": "narrator", "content": "hi"})',
        InvalidFieldError,
        "role is 'narrator', which no model knows; known are user, assistant, system, tool, developer and function, "
        "and a role of your own is Role.custom('narrator')",
    ),
    Mistake('chat.append({"content": "hi"})', InvalidFieldError, f"a message needs role; write {_EXAMPLE}"),
    Mistake('chat.append({"role": "user"})', InvalidFieldError, f"a message needs content; write {_EXAMPLE}"),
    Mistake(
        'chat.append({"role": "user", "text": "hi"})',
        UnknownFieldError,
        "a message has no key 'text'; did you mean 'content'?",
    ),
    Mistake(
        'chat.append({"role": "user", "content": "hi", "created_at": NOON})',
        UnknownFieldError,
        "a message has no key 'created_at'; did you mean 'sent_time'?",
    ),
    Mistake(
        'chat.append({"role": "user", "content": "hi", "mood": "good"})',
        UnknownFieldError,
        "a message has no key 'mood'; put what is yours into 'metadata'",
    ),
    Mistake(
        'chat.append({"type": "human", "role": "user", "content": "hi"})',
        UnknownFieldError,
        "a message has no key 'type'; put what is yours into 'metadata'",
    ),
    Mistake(
        'chat.append({"role": "user", "content": 5})',
        WrongTypeError,
        "content is 5 (an int); it must be a str or a list of parts",
    ),
    Mistake(
        'chat.append({"role": "tool", "content": "19 degrees"})',
        InvalidFieldError,
        "a tool message needs tool_call_id; give the id of the call that it answers",
    ),
    Mistake(
        'chat.append({"role": "user", "content": None})',
        WrongTypeError,
        "content is None; it must be a str or a list of parts",
    ),
    Mistake(
        'chat.append({"role": "user", "content": []})',
        InvalidFieldError,
        "content has no parts; it must be a str or a list of parts",
    ),
    Mistake(
        'chat.append({"role": "user", "content": ["hi"]})',
        WrongTypeError,
        """content[0] is 'hi' (a str); it must be a dict such as {"type": "text", "text": "hello"}""",
    ),
    Mistake(
        'chat.append({"role": "user", "content": [{"text": "hi"}]})',
        InvalidFieldError,
        'content[0] needs type; write {"type": "text", "text": "hello"}',
    ),
    Mistake(
        'chat.append({"role": "user", "content": [{"type": "text", "text": 5}]})',
        WrongTypeError,
        "content[0]['text'] is 5 (an int); it must be a str",
    ),
    Mistake(
        'chat.append({"role": "user", "content": [{"type": "tool_result", "content": "19 degrees"}]})',
        InvalidFieldError,
        "content[0], a tool_result, needs tool_use_id",
    ),
    Mistake(
        'chat.append({"type": "function_call_output", "output": "19 degrees"})',
        InvalidFieldError,
        "a function_call_output needs call_id",
    ),
    Mistake(
        'chat.append({"role": "assistant", "content": None, "tool_calls": "weather"})',
        WrongTypeError,
        "tool_calls is 'weather' (a str); it must be calls in a list",
    ),
    Mistake(
        'chat.append({"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "weather"}}]})',
        InvalidFieldError,
        "tool_calls[0] needs id; the result names it",
    ),
    Mistake(
        'chat.append({"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]})',
        InvalidFieldError,
        """tool_calls[0] needs function; write {"name": "search", "arguments": "{}"}""",
    ),
    Mistake(
        '[chat.append(HELLO, request_id="r"), chat.append([HELLO, HELLO], request_id="r")]',
        RequestIdReusedError,
        "the request id 'r' was used for another request: give each its own",
    ),
    Mistake('Message("user", 5)', WrongTypeError, "text is 5 (an int); it must be a str"),
    Mistake(
        'Message("user", content="hi")', UnknownFieldError, "Message() has no option 'content'; did you mean 'text'?"
    ),
    Mistake(
        'Message("user", "hi", sent_time="2026-11-21")',
        WrongTypeError,
        "sent_time is '2026-11-21' (a str); it must be a datetime or None: datetime.fromisoformat() makes one",
    ),
    Mistake(
        'Message("user", "hi", sent_time=datetime(2026, 11, 21))',
        InvalidFieldError,
        "sent_time is 2026-11-21 00:00:00, which has no time zone; add one, such as tzinfo=datetime.UTC",
    ),
    Mistake(
        'chat.append({"role": "user", "content": "x" * 2_000_000})',
        RequestTooLargeError,
        "text has 2,000,000 bytes; at most 1,048,576 are allowed: split it, or store it elsewhere and keep a link",
    ),
    Mistake(
        'chat.append(Message("user", "hi", metadata={"at": NOON}))',
        InvalidFieldError,
        "metadata cannot be stored as JSON: Object of type datetime is not JSON serializable; give what JSON can hold, "
        "or bytes",
    ),
    Mistake(
        'Message("user", "hi", attributes={"tags": ["a"]})',
        WrongTypeError,
        "attributes['tags'] is ['a'] (a list); it must be a bool, an int, a number, a str or None",
    ),
    Mistake(
        'chat.edit(["m1"])',
        WrongTypeError,
        "edits[0] is 'm1' (a str); it must be an Append, a Replace, a Remove, a RemoveAll or a Keep",
    ),
    Mistake('chat.edit([edits.Remove("m9")])', MessageNotFoundError, "there is no message 'm9'"),
)
"""Mistakes in messages."""

SEARCHES = (
    Mistake(
        'chat.search("PIN", top_k=3)',
        UnknownFieldError,
        "Conversation.search() has no option 'top_k'; did you mean 'k'?",
    ),
    Mistake(
        'chat.search("PIN", user="ana")',
        UnknownFieldError,
        "Conversation.search() has no option 'user'; the handle has its user, who is named in "
        "memory.conversation(id, user_id=...)",
    ),
    Mistake(
        'memory.user("ana").search("PIN", user_id="bob")',
        UnknownFieldError,
        "User.search() has no option 'user_id'; the handle has its user, who is named in memory.user(user_id)",
    ),
    Mistake('chat.search("PIN", k=0)', InvalidFieldError, "k is 0; it must be from 1 to 1,000"),
    Mistake('chat.search("PIN", k=5000)', InvalidFieldError, "k is 5000; it must be from 1 to 1,000"),
    Mistake('chat.search("PIN", k="3")', WrongTypeError, "k is '3' (a str); it must be an int"),
    Mistake(
        'chat.search("PIN", profile="vectors")',
        InvalidFieldError,
        "profile is 'vectors'; it must be 'hybrid', 'hybrid_late', 'vector' or 'lexical'; did you mean 'vector'?",
    ),
    Mistake('chat.search("")', InvalidFieldError, "query is empty; it must have 1 to 32,768 bytes"),
    Mistake(
        'chat.search("PIN", sent_after=NOON, sent_before=NOON - timedelta(days=1))',
        InvalidFieldError,
        "sent_after is 2026-11-21 12:00:00+00:00; it must not be later than sent_before, which is "
        "2026-11-20 12:00:00+00:00",
    ),
    Mistake(
        "chat.messages(received_after=NOON, received_before=NOON - timedelta(days=1))",
        InvalidFieldError,
        "received_after is 2026-11-21 12:00:00+00:00; it must not be later than received_before, which is "
        "2026-11-20 12:00:00+00:00",
    ),
    Mistake(
        "chat.context(recall={'sent_after': NOON, 'sent_before': NOON - timedelta(days=1)})",
        InvalidFieldError,
        "sent_after is 2026-11-21 12:00:00+00:00; it must not be later than sent_before, which is "
        "2026-11-20 12:00:00+00:00",
    ),
    Mistake(
        "chat.search([0.1, 0.2])", WrongTypeError, "query is [0.1, 0.2] (a list); it must be a str or an Embedding"
    ),
    Mistake(
        'chat.search("PIN", roles="user")',
        WrongTypeError,
        "roles is 'user' (a str); it must be a list, each item a str: put it into one, ['user']",
    ),
    Mistake(
        'chat.search("PIN", sent_after="2026-11-21")',
        WrongTypeError,
        "sent_after is '2026-11-21' (a str); it must be a datetime: datetime.fromisoformat() makes one",
    ),
    Mistake(
        'chat.search("PIN", sent_after=date(2026, 11, 21))',
        WrongTypeError,
        "sent_after is datetime.date(2026, 11, 21) (a date); it must be a datetime: add a time of day and a time zone",
    ),
    Mistake(
        'chat.search("PIN", since=NOON)',
        UnknownFieldError,
        "Conversation.search() has no option 'since'; did you mean 'sent_after'?",
    ),
    Mistake(
        'chat.search("PIN", where={"age": {"gte": 18}})',
        WrongTypeError,
        "where['age'] is {'gte': 18} (a dict); it must be a bool, an int, a number, a str or None",
    ),
    Mistake(
        'chat.search("PIN", where=Condition("age", ">=", 18) and Condition("topic", "==", "visa"))',
        WrongTypeError,
        "filters are joined by &, | and ~, not by and, or and not; put each condition into parentheses",
    ),
    Mistake(
        'Condition("age", "gte", 18)',
        InvalidFieldError,
        "comparison is 'gte'; it must be '==', '!=', '<', '<=', '>', '>=', 'in', 'present' or 'absent'; "
        "did you mean '>='?",
    ),
    Mistake(
        'Condition("age", "=>", 18)',
        InvalidFieldError,
        "comparison is '=>'; it must be '==', '!=', '<', '<=', '>', '>=', 'in', 'present' or 'absent'; "
        "did you mean '>='?",
    ),
    Mistake('Condition("age", ">=")', InvalidFieldError, "values are 0; '>=' takes one value"),
    Mistake(
        'Condition("age", ">=", None)',
        WrongTypeError,
        "values[0] is None; it must be a number or a str, as '>=' compares them",
    ),
    Mistake(
        'chat.search("PIN", weights={"bm52": 1})',
        UnknownFieldError,
        "weights has no option 'bm52'; did you mean 'bm25'?",
    ),
    Mistake(
        'chat.search("PIN", profile="lexical", weights={"bm25": 1})',
        InvalidFieldError,
        "weights: only hybrid profiles have weights",
    ),
    Mistake(
        'chat.search("PIN", where=Condition("age", ">=", 18) & "visa")',
        WrongTypeError,
        "filters[1] is 'visa' (a str); it must be a Filter",
    ),
    Mistake(
        'chat.messages(where=AnyOf((Condition("a", "==", 1),) * 64) & Condition("b", "==", 2))',
        InvalidFieldError,
        "where has more than 64 conditions",
    ),
    Mistake('chat.search("PIN", where=AnyOf(()))', InvalidFieldError, "filters has 0 items; give 1 to 64"),
    Mistake(
        'Embedding("m", b"123")',
        InvalidFieldError,
        "data has 3 bytes; it must have 4 for each dimension: Embedding.of() makes them",
    ),
    Mistake('Embedding("m", [0.1])', WrongTypeError, "data is [0.1] (a list); it must be bytes"),
)
"""Mistakes in searches."""

CONTEXTS = (
    Mistake("chat.context(max_tokens=0)", InvalidFieldError, "max_tokens is 0; it must be from 1 to 10,000,000"),
    Mistake('chat.context("my PIN")', WrongTypeError, "max_tokens is 'my PIN' (a str); it must be an int"),
    Mistake(
        "chat.context(max_token=100)",
        UnknownFieldError,
        "Conversation.context() has no option 'max_token'; did you mean 'max_tokens'?",
    ),
    Mistake('chat.context(recall={"top_k": 3})', UnknownFieldError, "recall has no option 'top_k'; did you mean 'k'?"),
    Mistake('chat.context(recall={"k": "3"})', WrongTypeError, "recall['k'] is '3' (a str); it must be an int"),
    Mistake(
        'chat.context(facts={"most": 3})',
        UnknownFieldError,
        "facts has no option 'most'; it has at_any_time, k, recorded_at, threshold and valid_at",
    ),
    Mistake("chat.context(facts=3)", WrongTypeError, "facts is 3 (an int); it must be a bool or a dict"),
    Mistake('chat.context(shares={"facts": 2})', InvalidFieldError, "shares['facts'] is 2; it must be from 0 to 1"),
    Mistake('chat.context(working_memory="yes")', WrongTypeError, "working_memory is 'yes' (a str); it must be a bool"),
    Mistake("chat.context(recall=None)", WrongTypeError, "recall is None; it must be a bool or a dict"),
    Mistake(
        'chat.context(encoding="o200k")',
        InvalidFieldError,
        "encoding is 'o200k'; it must be 'o200k_base', 'cl100k_base' or 'approximate'; did you mean 'o200k_base'?",
    ),
    Mistake(
        'chat.context(encoding="o200k_base", model="gpt-4o")',
        InvalidFieldError,
        "encoding and model are both given; give one, not both",
    ),
    Mistake(
        "chat.context(max_tokens=1)",
        BudgetTooSmallError,
        "max_tokens is 1; the system text and the newest messages need 8",
    ),
)
"""Mistakes in contexts."""

FACTS = (
    Mistake('memory.user("ana").facts.forget([])', InvalidFieldError, "ids has 0 items; give 1 to 1,000"),
    Mistake('memory.user("ana").facts.retract([])', InvalidFieldError, "ids has 0 items; give 1 to 1,000"),
    Mistake(
        'memory.user("ana").memory_items.delete(["m"] * 1001)',
        InvalidFieldError,
        "ids has 1,001 items; at most 1,000 are allowed",
    ),
    Mistake(
        'memory.user("ana").facts.list_facts(valid_at=NOON, at_any_time=True)',
        InvalidFieldError,
        "valid_at is given beside at_any_time; give one, not both",
    ),
    Mistake(
        'memory.user("ana").facts.extract("I like tea.", dryrun=True)',
        UnknownFieldError,
        "Facts.extract() has no option 'dryrun'; did you mean 'dry_run'?",
    ),
)
"""Mistakes in what is known of users."""

CONVERSATIONS = (
    Mistake(
        'memory.conversation("nope").context()',
        ConversationNotFoundError,
        "there is no conversation 'nope', or it is another user's",
    ),
    Mistake('memory.create_conversation("c")', ConversationExistsError, "there is a conversation 'c' already"),
    Mistake("memory.conversation(7)", WrongTypeError, "conversation_id is 7 (an int); it must be a str"),
    Mistake("memory.conversation(None)", WrongTypeError, "conversation_id is None; it must be a str"),
    Mistake(
        'memory.conversation("c", titel="Leave")',
        UnknownFieldError,
        "Remora.conversation() has no option 'titel'; did you mean 'title'?",
    ),
    Mistake(
        'memory.conversation("c", storage_limit=0)',
        InvalidFieldError,
        "storage_limit is 0; it must be from 1 to 1,000,000",
    ),
    Mistake(
        'chat.update(titel="Leave")',
        UnknownFieldError,
        "Conversation.update() has no option 'titel'; did you mean 'title'?",
    ),
    Mistake(
        'memory.list_conversations(order_by="updated")',
        InvalidFieldError,
        "order_by is 'updated'; it must be 'create_time', 'update_time' or 'title'; did you mean 'update_time'?",
    ),
    Mistake("chat.messages(-1)", InvalidFieldError, "limit is -1; it must be at least 0"),
    Mistake(
        "chat.messages(last=10)",
        UnknownFieldError,
        "Conversation.messages() has no option 'last'; did you mean 'limit'?",
    ),
    Mistake("chat.messages(after=-1)", InvalidFieldError, "after is -1; it must be at least 0"),
    Mistake(
        "memory.list_conversations(skip=10**12)",
        InvalidFieldError,
        "skip is 1000000000000; it must be at most 2,147,483,647",
    ),
    Mistake(
        "Summarize(100, max_summary_tokens=200)",
        InvalidFieldError,
        "max_summary_tokens is 200; it must be at most max_tokens, which is 100",
    ),
    Mistake(
        "Trim(100, keep_tokens=200)",
        InvalidFieldError,
        "keep_tokens is 200; it must be at most max_tokens, which is 100",
    ),
    Mistake('chat.messages(after="m1")', WrongTypeError, "after is 'm1' (a str); it must be an int, a Message or None"),
    Mistake('chat.save_steps([{"id": "s"}])', WrongTypeError, "steps[0] is {'id': 's'} (a dict); it must be a Step"),
    Mistake(
        'Step("s", "tool")',
        InvalidFieldError,
        "type is 'tool'; it must be 'text', 'tool_call', 'tool_result' or 'other'; did you mean 'tool_call'?",
    ),
    Mistake(
        "chat.working_memory.set(object)",
        InvalidFieldError,
        "content cannot be stored as JSON: Object of type type is not JSON serializable; give what JSON can hold, "
        "or bytes",
    ),
    Mistake(
        "chat.working_memory.edit(b'x')",
        InvalidFieldError,
        "content must be text or what JSON can hold, not None or bytes; set() takes bytes",
    ),
    Mistake(
        'chat.working_memory.edit({}, mode="add")',
        InvalidFieldError,
        "mode is 'add'; it must be 'replace' or 'append'",
    ),
    Mistake(
        'chat.working_memory.edit({"age": "ten"}, schema={"properties": {"age": {"type": "integer"}}})',
        InvalidFieldError,
        'content: does not match the schema at $.age: "ten" is not of type "integer"',
    ),
    Mistake(
        'chat.working_memory.using(template="# Notes", schema={})',
        InvalidFieldError,
        "schema is given beside template; give one of them",
    ),
    Mistake(
        'chat.working_memory.using(template="# Notes").edit("{}", schema={})',
        InvalidFieldError,
        "schema is given beside template; give one of them",
    ),
    Mistake(
        'chat.working_memory.using(template="# Notes").edit({})',
        InvalidFieldError,
        "content must be text, because this working memory has a template",
    ),
    Mistake(
        'chat.working_memory.using(template="")',
        InvalidFieldError,
        "template is empty; it must have 1 to 65,536 bytes",
    ),
    Mistake(
        "chat.working_memory.using(schema='{}')",
        WrongTypeError,
        "schema is '{}' (a str); it must be a dict or None",
    ),
    Mistake(
        'chat.working_memory.using(templates="# Notes")',
        UnknownFieldError,
        "WorkingMemory.using() has no option 'templates'; did you mean 'template'?",
    ),
    Mistake("memory.embed(5)", WrongTypeError, "texts is 5 (an int); it must be a str or a list, each item a str"),
)
"""Other mistakes."""

RECORDS = (
    Mistake(
        'memory.workflows.save_run({"id": "r"})',
        WrongTypeError,
        "run is {'id': 'r'} (a dict); it must be a WorkflowRun",
    ),
    Mistake('memory.workflows.save_run(WorkflowRun("r"))', InvalidFieldError, "WorkflowRun() needs workflow_id"),
    Mistake(
        'WorkflowRun("r", "w", "done")',
        InvalidFieldError,
        "status is 'done'; it must be 'running', 'suspended', 'completed', 'cancelled', 'error' or 'other'",
    ),
    Mistake(
        'WorkflowRun("r", "w", state={})',
        UnknownFieldError,
        "WorkflowRun() has no option 'state'; did you mean 'status'?",
    ),
    Mistake(
        'WorkflowRun("r", "w", metadata=["a"])', WrongTypeError, "metadata is ['a'] (a list); it must be a dict or None"
    ),
    Mistake(
        'WorkflowRun("r", "w", start_time=datetime(2026, 11, 21))',
        InvalidFieldError,
        "start_time is 2026-11-21 00:00:00, which has no time zone; add one, such as tzinfo=datetime.UTC",
    ),
    Mistake(
        'WorkflowRun("r", "w", suspension="Ana")',
        WrongTypeError,
        "suspension is 'Ana' (a str); it must be a Suspension or None",
    ),
    Mistake('Suspension("Ana")', WrongTypeError, "Suspension() got 1 argument without a name; it takes none: name all"),
    Mistake(
        'memory.workflows.update_run("r", state="suspended")',
        UnknownFieldError,
        "Workflows.update_run() has no option 'state'; did you mean 'status'?",
    ),
    Mistake(
        'memory.workflows.update_run("r", status="paused")',
        InvalidFieldError,
        "status is 'paused'; it must be 'running', 'suspended', 'completed', 'cancelled', 'error' or 'other'",
    ),
    Mistake(
        'memory.workflows.update_run("nope", status="running")', WorkflowRunNotFoundError, "there is no run 'nope'"
    ),
    Mistake(
        'memory.workflows.resume_run("r")',
        InvalidFieldError,
        "Workflows.resume_run() needs expected_revision; give the revision of the suspended run as "
        "you read it: run.revision",
    ),
    Mistake(
        'memory.workflows.list_runs("orders")',
        WrongTypeError,
        "Workflows.list_runs() got 1 argument without a name; it takes none: name all",
    ),
    Mistake('memory.workflows.prune_runs("orders")', InvalidFieldError, "Workflows.prune_runs() needs keep_newest"),
    Mistake(
        'memory.workflows.save_run(WorkflowRun("r", "w", input=NOON))',
        InvalidFieldError,
        "input cannot be stored as JSON: Object of type datetime is not JSON serializable; give what JSON can hold, "
        "or bytes",
    ),
    Mistake('HistoryEntry("e")', InvalidFieldError, "HistoryEntry() needs agent_id"),
    Mistake('memory.history.get_entry("nope")', HistoryEntryNotFoundError, "there is no history entry 'nope'"),
    Mistake(
        'memory.history.update_entry("e", agent_id="a")',
        UnknownFieldError,
        "History.update_entry() has no option 'agent_id'; did you mean 'entry_id'?",
    ),
    Mistake(
        'memory.history.add_events(TimelineEvent("t", "r"))',
        WrongTypeError,
        "events is TimelineEvent(id='t', run_id='r', name='', type='', user_... (a TimelineEvent); it must be a "
        "list, each item a TimelineEvent",
    ),
    Mistake(
        'TimelineEvent("t", "r", tags="red")',
        WrongTypeError,
        "tags is 'red' (a str); it must be a list, each item a str: put it into one, ['red']",
    ),
    Mistake(
        "memory.history.list_log_records(min_severity_number=25)",
        InvalidFieldError,
        "min_severity_number is 25; it must be from 1 to 24",
    ),
    Mistake(
        'Vector("v", "text")',
        WrongTypeError,
        "values is 'text' (a str); it must be numbers in a list or an array, or an Embedding",
    ),
    Mistake('Vector("v", [0.1, "0.2"])', WrongTypeError, "values[1] is '0.2' (a str); it must be a number"),
    Mistake(
        'Vector("v", [0.1, float("nan")])',
        InvalidFieldError,
        "values[1] is nan; it must be a finite number that 32 bits can hold",
    ),
    Mistake('Vector("v", [])', InvalidFieldError, "values has 0 numbers; it must have 1 to 4,096"),
    Mistake(
        'Vector("v", np.ones((2, 2)))', InvalidFieldError, "values is an array of 2 dimensions; give one row of numbers"
    ),
    Mistake('memory.vectors("docs").upsert([])', InvalidFieldError, "vectors has 0 items; give 1 to 10,000"),
    Mistake("memory.workflows.save_steps([])", InvalidFieldError, "steps has 0 items; give 1 to 1,000"),
    Mistake("memory.history.add_events([])", InvalidFieldError, "events has 0 items; give 1 to 1,000"),
    Mistake('memory.user("ana").facts.add([])', InvalidFieldError, "facts has 0 items; give 1 to 1,000"),
    Mistake('memory.user("ana").memory_items.add([])', InvalidFieldError, "items has 0 items; give 1 to 1,000"),
    Mistake("chat.edit([])", InvalidFieldError, "edits has 0 items; give 1 to 1,000"),
    Mistake('MemoryItem("x", ttl=1e300)', InvalidFieldError, "ttl is 1e+300; it must be from 0.001 to 3,155,760,000"),
    Mistake(
        'Vector("v", np.array([1 + 2j]))',
        InvalidFieldError,
        "values is an array of complex numbers; give real ones, such as its `real`",
    ),
    Mistake(
        'Condition("topic", "in", ["travel", "leave"])',
        WrongTypeError,
        "values[0] is ['travel', 'leave'] (a list); it must be a bool, an int, a number, a str or None: give what is "
        "in it one by one",
    ),
    Mistake(
        "chat.working_memory.using(schema=Model)",
        WrongTypeError,
        "schema is <class 'tests.client.test_mistakes.Model'> (a type); it must be a dict or None: its "
        "model_json_schema() is one",
    ),
    Mistake(
        'memory.vectors("docs").upsert({"id": "v"})',
        WrongTypeError,
        "vectors is {'id': 'v'} (a dict); it must be a Vector or a list, each item a Vector",
    ),
    Mistake(
        'memory.vectors("docs").search("")', InvalidFieldError, "query is empty; it must have 1 to 1,048,576 bytes"
    ),
    Mistake(
        'memory.vectors("docs").search(5)',
        WrongTypeError,
        "query is 5 (an int); it must be a str, numbers in a list or an array, or an Embedding",
    ),
    Mistake(
        'memory.vectors("docs").search([0.1], top_k=3)',
        UnknownFieldError,
        "Vectors.search() has no option 'top_k'; did you mean 'k'?",
    ),
    Mistake(
        'memory.vectors("docs").search([0.1], filter={"a": 1})',
        UnknownFieldError,
        "Vectors.search() has no option 'filter'; did you mean 'where'?",
    ),
    Mistake(
        'memory.vectors("docs").delete_where({})',
        InvalidFieldError,
        "where has no condition; clear_collection() deletes all vectors",
    ),
    Mistake('memory.vectors("")', InvalidFieldError, "collection_id is empty; it must have 1 to 512 bytes"),
    Mistake(
        'memory.vectors("docs").create_collection(dimension=5000)',
        InvalidFieldError,
        "dimension is 5000; it must be from 1 to 4,096",
    ),
    Mistake('memory.vectors("nope").get_collection()', CollectionNotFoundError, "there is no collection 'nope'"),
)
"""Mistakes in runs of workflows, in agents' history and in vectors."""

HISTORIES = (
    Mistake("memory.trim([], 0)", InvalidFieldError, "max_tokens is 0; it must be from 1 to 2,147,483,647"),
    Mistake(
        'memory.trim([], 9, strategy="newest")',
        InvalidFieldError,
        "strategy is 'newest'; it must be 'last' or 'first'",
    ),
    Mistake(
        'memory.trim([], 9, mode="langchain", model="gpt-4o")',
        InvalidFieldError,
        "encoding and model are not for mode='langchain', which has a counter of its own",
    ),
    Mistake(
        'memory.trim([], 9, start_on="usr")',
        InvalidFieldError,
        "start_on is 'usr', which no model knows; did you mean 'user'? (A role of your own is Role.custom('usr'))",
    ),
    Mistake(
        'memory.trim([], 9, strategy="first", include_system=True)',
        InvalidFieldError,
        "include_system is for strategy='last'",
    ),
    Mistake(
        'memory.trim([{"role": "user"}], 9)',
        InvalidFieldError,
        f"messages[0]: a message needs content; write {_EXAMPLE}",
    ),
    Mistake(
        'memory.validate("hello")',
        WrongTypeError,
        "messages is 'hello' (a str); it must be a list: put it into one, ['hello']",
    ),
    Mistake("memory.clear_tool_uses([], keep=-1)", InvalidFieldError, "keep is -1; it must be at least 0"),
    Mistake(
        "memory.clear_tool_uses([], trigger=9)",
        UnknownFieldError,
        "Remora.clear_tool_uses() has no option 'trigger'; did you mean 'trigger_tokens'?",
    ),
)
"""Mistakes in trimming, checking and clearing histories."""

MISTAKES = (*SCOPES, *CLIENTS, *MESSAGES, *SEARCHES, *CONTEXTS, *FACTS, *CONVERSATIONS, *RECORDS, *HISTORIES)


def _table() -> str:
    rows = [
        f"| `{code}` | {kind.__name__} | {sentence.replace('|', chr(92) + '|')} |" for code, kind, sentence in MISTAKES
    ]
    return "\n".join(["| call | class | sentence |", "|---|---|---|", *rows])


if __name__ == "__main__":
    sys.stdout.write(f"{_table()}\n")
