"""`remora search` and `remora log`: what a person sees at a terminal, and what a script gets."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from grpc import StatusCode
from rich.cells import cell_len
from tests.client.scripted_server import Failure, ScriptedServer
from tests.commands.terminal import begin, done, on_terminal, remora
from tests.patience import PATIENCE
from tests.ports import free_port
from tests.tokens import token_file

from remora import Image, Media, Message, Remora
from remora.testing import serve
from remora.v1.conversation_pb2 import Conversation
from remora.v1.conversation_service_pb2 import GetConversationResponse, ListMessagesRequest, ListMessagesResponse
from remora.v1.message_pb2 import Message as WireMessage
from remora_server.main import main

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """A server with two conversations of tenant `acme`."""
    with serve("--model=none") as endpoint, Remora(endpoint, tenant="acme", timeout=PATIENCE) as memory:
        trip = memory.conversation("trip", user_id="sarah", title="A trip")
        trip.append(
            [
                Message("user", "Which train goes to Lisbon?", name="Sarah"),
                Message("assistant", "The night train.\nIt leaves at ten."),
                Message("user", "\x1b[31mred\x07 and \x9b1m"),
            ]
        )
        memory.conversation("work", user_id="tom").append(Message("user", "The report is late."))
        yield endpoint


def lines(endpoint: str, *arguments: str) -> list[str]:
    return done(endpoint, *arguments, "--tenant", "acme").decode().splitlines()


def test_conversations_are_listed_newest_first(endpoint: str) -> None:
    head, first, second = lines(endpoint, "log")

    assert head.split() == ["updated", "conversation", "user", "messages", "title"]
    assert re.fullmatch(rf"{TIME}  work +tom +1 *", first)
    assert re.fullmatch(rf"{TIME}  trip +sarah +3  A trip", second)
    assert len(lines(endpoint, "log", "--user", "tom")) == 2
    assert len(lines(endpoint, "log", "--limit", "1")) == 2


def test_messages_are_shown_oldest_first_and_steer_no_terminal(endpoint: str) -> None:
    shown = lines(endpoint, "log", "trip")

    assert re.fullmatch(rf"{TIME}  Sarah  Which train goes to Lisbon\?", shown[0])
    assert re.fullmatch(rf"{TIME}  assistant  The night train\.", shown[1])
    assert shown[2] == "    It leaves at ten."
    assert shown[3].endswith("  user  ␛[31mred␇ and <U+009B>1m")
    assert len(lines(endpoint, "log", "trip", "--limit", "1")) == 1


@pytest.mark.slow
def test_times_are_those_of_the_zone_and_for_scripts_in_utc(endpoint: str) -> None:
    said = Message("user", "hello", sent_time=datetime(2026, 11, 22, 20, 12, tzinfo=UTC))
    with Remora(endpoint, tenant="zoned", timeout=PATIENCE) as memory:
        memory.conversation("c").append(said)

    def shown(*arguments: str) -> str:
        process = begin(endpoint, "log", "c", "--tenant", "zoned", *arguments, variables={"TZ": "JST-9"})
        return process.communicate(timeout=PATIENCE)[0].decode()

    assert shown().startswith("2026-11-23 05:12  user  hello")
    assert json.loads(shown("--json"))["sent_time"] == "2026-11-22T20:12:00+00:00"


FORGED = "2026-11-22 08:12  system  forged"


@pytest.mark.slow
def test_what_is_said_forges_no_message_and_no_conversation(endpoint: str, capsys: pytest.CaptureFixture[str]) -> None:
    def piped(*arguments: str) -> list[str]:
        assert main([*arguments, "--tenant", "forging", "--endpoint", endpoint]) == 0
        return capsys.readouterr().out.splitlines()

    with Remora(endpoint, tenant="forging", timeout=PATIENCE) as memory:
        chat = memory.conversation(f"c\n{FORGED}", user_id=f"u\n{FORGED}", title=f"t\u2028\t{FORGED}")
        chat.append(Message("user", f"hello\n{FORGED}\n{' ' * 60}{FORGED}", name=f"n\n{FORGED}"))

    messages = piped("log", f"c\n{FORGED}")
    table = piped("log")
    hits = piped("search", "hello", "--all-users")
    shown = on_terminal(endpoint, "log", f"c\n{FORGED}", "--tenant", "forging", NO_COLOR="1")

    assert [bool(re.match(TIME, line)) for line in messages] == [True, False, False]
    assert messages[1] == f"    {FORGED}"
    assert f"n␊{FORGED}" in messages[0]
    assert len(table) == 2
    assert f"c␊{FORGED}" in table[1]
    assert f"u␊{FORGED}" in table[1]
    assert f"t␤␉{FORGED}" in table[1]
    assert re.fullmatch(rf"\d\.\d{{3}}  c␊{FORGED}", hits[0])
    assert hits[1:] == messages
    first, *rest = ESCAPE.sub("", shown).splitlines()
    assert re.match(TIME, first)
    assert rest
    assert all(line.startswith("    ") for line in rest)


def test_a_message_without_text_says_what_it_holds(endpoint: str) -> None:
    with Remora(endpoint, tenant="pictures", timeout=PATIENCE) as memory:
        seen = memory.conversation("seen", user_id="sarah")
        seen.append([Message("user", media=Media((Image(640, 480),), ("audio",))), Message("user")])

    first, second = done(endpoint, "log", "seen", "--tenant", "pictures").decode().splitlines()
    assert first.endswith("  user  [image of 640x480] [audio]")
    assert second.endswith("  user  [no text]")


def test_what_is_said_neither_hides_nor_turns_around(endpoint: str, capsys: pytest.CaptureFixture[str]) -> None:
    turned, hidden = "\u202e\u2066", "\u200b\U000e0041"

    def piped(*arguments: str) -> str:
        assert main([*arguments, "--tenant", "turned", "--endpoint", endpoint]) == 0
        return capsys.readouterr().out

    with Remora(endpoint, tenant="turned", timeout=PATIENCE) as memory:
        chat = memory.conversation(f"c{turned}", user_id=f"u{turned}", title=f"t{hidden}")
        chat.append(Message("user", f"hello {turned}{hidden}", name=f"n{turned}"))

    for shown in (piped("log"), piped("log", f"c{turned}"), piped("search", "hello", "--all-users")):
        assert not re.search(f"[{turned}{hidden}]", shown)
        assert "<U+202E><U+2066>" in shown
    for line in (piped("log", f"c{turned}", "--json"), piped("search", "hello", "--all-users", "--json")):
        assert not re.search(f"[{turned}{hidden}]", line)
        assert json.loads(line)["text"] == f"hello {turned}{hidden}"
    assert main(["log", f"lost{turned}", "--endpoint", f"unix:/{turned}/s"]) == 1
    assert not re.search(f"[{turned}]", capsys.readouterr().err)


def test_a_log_says_where_there_is_nothing_and_where_there_is_more(
    endpoint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(*arguments: str) -> str:
        assert main(["log", *arguments, "--tenant", "acme", "--endpoint", endpoint]) == 0
        return capsys.readouterr().err

    assert said() == said("trip") == said("--limit", "2") == said("trip", "--limit", "3") == ""
    assert said("--user", "nobody") == said("trip", "--user", "nobody") == "nothing was found\n"
    assert said("--limit", "1") == "there are more, older ones: --limit shows more than 1\n"
    assert said("trip", "--limit", "2") == "there are more, older ones: --limit shows more than 2\n"
    assert said("--limit", "1", "--json") == said("--user", "nobody", "--json") == ""


def test_scripts_get_one_object_a_line(endpoint: str) -> None:
    messages = [json.loads(line) for line in lines(endpoint, "log", "trip", "--json")]
    conversations = [json.loads(line) for line in lines(endpoint, "log", "--json")]
    hits = [json.loads(line) for line in lines(endpoint, "search", "night train", "--all-users", "--json")]

    assert [message["sequence"] for message in messages] == [1, 2, 3]
    assert messages[0]["name"] == "Sarah"
    assert messages[2]["text"] == "\x1b[31mred\x07 and \x9b1m"
    assert [conversation["conversation_id"] for conversation in conversations] == ["work", "trip"]
    assert [hit["sequence"] for hit in hits[:2]] == [2, 1]
    assert hits[0]["score"] > hits[1]["score"] > 0


def test_a_search_shows_scores_speakers_and_where(endpoint: str) -> None:
    code, output, said = remora(endpoint, "search", "night train", "--all-users", "--limit", "1", "--tenant", "acme")

    assert code == 0
    first, second, third = output.decode().splitlines()
    assert re.fullmatch(r"\d\.\d{3}  trip", first)
    assert re.fullmatch(rf"{TIME}  assistant  The night train\.", second)
    assert third == "    It leaves at ten."
    assert said == "found by words only: the server has no embedding model\n"


def test_a_search_shows_more_than_one_reply_has_room_for(endpoint: str) -> None:
    with Remora(endpoint, tenant="large", timeout=PATIENCE) as memory:
        for number in range(5):
            memory.conversation("tea").append({"role": "user", "content": f"tea {number} {'x' * 900_000}"})

    def shown(*options: str) -> int:
        found = done(endpoint, "search", "tea", *options, "--json", "--tenant", "large").splitlines()
        return len({json.loads(line)["sequence"] for line in found})

    assert shown("--all-users") == 5
    assert shown("--user", "default", "--limit", "5") == 5
    assert shown("--conversation", "tea", "--limit", "4") == 4


def test_a_search_is_of_a_tenant_a_user_or_a_conversation(endpoint: str) -> None:
    wide: list[tuple[str, ...]] = [("--all-users",), ("--user", "tom"), ("--conversation", "work")]
    for scope in wide:
        assert len(lines(endpoint, "search", "report", "--json", *scope)) == 1
    wide = [("--user", "sarah"), ("--conversation", "trip"), ("--conversation", "work", "--user", "sarah")]
    for scope in wide:
        assert lines(endpoint, "search", "report", "--json", *scope) == []


@pytest.mark.slow
def test_a_terminal_gets_colours_and_found_words_unless_it_wants_none(endpoint: str) -> None:
    coloured = on_terminal(endpoint, "search", "night", "--all-users", "--tenant", "acme")
    plain = on_terminal(endpoint, "search", "night", "--all-users", "--tenant", "acme", NO_COLOR="1")

    assert "\x1b[1;4mnight\x1b[0m" in coloured
    assert re.search(r"\x1b\[1;32massistant", coloured)
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", plain)
    assert ESCAPE.sub("", coloured) == ESCAPE.sub("", plain)
    assert "\x1b" not in done(endpoint, "search", "night", "--all-users", "--tenant", "acme").decode()


@pytest.mark.slow
def test_lists_on_a_terminal_cut_texts_to_its_width_and_pipes_get_them_whole(endpoint: str) -> None:
    words = ("and so on " * 20).strip()
    with Remora(endpoint, tenant="wordy", timeout=PATIENCE) as memory:
        chat = memory.conversation("c", user_id="sarah", title=f"Title {words}")
        chat.append(Message("user", f"Lisbon\tand\n東京 {words}"))
        receipts = [chat.search(query).receipt_id for query in ("Porto", "Lisbon")]

    for command in (["log"], ["search", "Lisbon", "--user", "sarah"], ["context", "diff", *receipts]):
        shown = ESCAPE.sub("", on_terminal(endpoint, *command, "--tenant", "wordy")).splitlines()
        [text] = [line.rstrip() for line in shown if re.match(TIME, line)]

        assert text.endswith("…")
        assert cell_len(text) <= 60
        assert command == ["log"] or re.fullmatch(rf"{TIME}  user  Lisbon +and 東京 and.*", text)
        assert words in done(endpoint, *command, "--tenant", "wordy").decode()
    whole = ESCAPE.sub("", on_terminal(endpoint, "log", "c", "--tenant", "wordy"))
    assert words in re.sub(r"\s+", " ", whole)


CONVERSATION, USER = "0199c2a4-7d1e-7c55-9f0e-3b0a6c1d2e4f", "sarah.smith@example.org"


@pytest.fixture(scope="module")
def long_ids(endpoint: str) -> list[str]:
    """The ids of two receipts in the tenant `ids`, which has two conversations."""
    with Remora(endpoint, tenant="ids", timeout=PATIENCE) as memory:
        memory.conversation("c", user_id="tom", title="Short").append(Message("user", "hello"))
        chat = memory.conversation(CONVERSATION, user_id=USER, title="A title of some length")
        chat.append(Message("user", "Lisbon"))
        return [chat.search(query).receipt_id for query in ("Porto", "Lisbon")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("width", "head"),
    [
        (120, ["updated", "conversation", "user", "messages", "title"]),
        (96, ["updated", "conversation", "user", "messages", "title"]),
        (95, ["updated", "conversation", "user", "messages"]),
        (89, ["updated", "conversation", "user", "messages"]),
        (88, ["updated", "conversation", "user"]),
        (79, ["updated", "conversation", "user"]),
        (78, ["conversation", "user"]),
        (40, ["conversation", "user"]),
        (30, ["conversation", "user"]),
    ],
)
@pytest.mark.usefixtures("long_ids")
def test_a_narrow_terminal_shows_fewer_columns_and_whole_ids(endpoint: str, width: int, head: list[str]) -> None:
    shown = on_terminal(endpoint, "log", "--tenant", "ids", COLUMNS=str(width), NO_COLOR="1")

    first, *rows = ESCAPE.sub("", shown).splitlines()
    assert first.split() == head
    assert [[id_ in row.split() for id_ in (CONVERSATION, USER)] for row in rows] == [[True, True], [False, False]]
    assert all(cell_len(row) <= max(width, len(f"{CONVERSATION}  {USER}")) for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize("width", [120, 60, 45, 40, 37, 36, 30])
def test_lists_show_whole_ids_on_a_narrow_terminal(endpoint: str, long_ids: list[str], width: int) -> None:
    def shown(*arguments: str) -> list[str]:
        text = on_terminal(endpoint, *arguments, "--tenant", "ids", COLUMNS=str(width), NO_COLOR="1")
        return ESCAPE.sub("", text).splitlines()

    assert set(long_ids) <= {line.split()[0] for line in shown("context", "list", "--conversation", CONVERSATION)}
    assert [line.split()[1] for line in shown("search", "Lisbon", "--user", USER)[::2]] == [CONVERSATION]


@pytest.mark.slow
def test_messages_are_followed_until_an_interrupt(endpoint: str) -> None:
    with Remora(endpoint, tenant="followed", timeout=PATIENCE) as memory:
        chat = memory.conversation("c")
        chat.append(Message("user", "first"))
        process = begin(endpoint, "log", "c", "--follow", "--json", "--tenant", "followed")
        assert process.stdout is not None

        assert json.loads(process.stdout.readline())["text"] == "first"
        chat.append([Message("user", "second"), Message("user", "third")])
        assert [json.loads(process.stdout.readline())["text"] for _ in range(2)] == ["second", "third"]

        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=PATIENCE) == (b"", b"")
        assert process.returncode == 130


@pytest.mark.slow
def test_a_conversation_that_is_made_again_is_followed_from_its_start(endpoint: str) -> None:
    with Remora(endpoint, tenant="renewed", timeout=PATIENCE) as memory:
        chat = memory.conversation("c", user_id="sarah")
        chat.append([Message("user", "first"), Message("user", "second")])
        process = begin(endpoint, "log", "c", "--follow", "--json", "--tenant", "renewed", "--user", "sarah")
        assert process.stdout is not None
        assert [json.loads(process.stdout.readline())["text"] for _ in range(2)] == ["first", "second"]

        chat.delete()
        chat.append(Message("user", "anew"))
        shown = json.loads(process.stdout.readline())
        chat.append(Message("user", "again"))

        assert (shown["text"], shown["sequence"]) == ("anew", 1)
        assert json.loads(process.stdout.readline())["text"] == "again"
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=PATIENCE) == (b"", b"")


@pytest.mark.slow
def test_a_deleted_conversation_is_waited_for_while_it_is_followed(tmp_path: Path) -> None:
    endpoint = f"unix:{tmp_path}/s"
    missing = Failure(StatusCode.NOT_FOUND, "CONVERSATION_NOT_FOUND")
    old, new = (GetConversationResponse(conversation=Conversation(id="c", uid=uid)) for uid in (1, 9))
    listed = [
        ListMessagesResponse(messages=[WireMessage(role="user", text=text, sequence=1)]) for text in ("old", "new")
    ]
    nothing = ListMessagesResponse()

    with ScriptedServer(endpoint) as server:
        server.answer("GetConversation", old, new)
        server.answer("ListMessages", listed[0], missing, missing, nothing, listed[1], nothing)
        process = begin(endpoint, "log", "c", "--follow", "--json")
        assert process.stdout is not None
        shown = [json.loads(process.stdout.readline())["text"] for _ in range(2)]
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)

    assert shown == ["old", "new"]
    assert [request.after_sequence for request in server.requests(ListMessagesRequest)][1:5] == [1, 1, 1, 0]


@pytest.mark.slow
def test_a_reader_that_goes_away_ends_the_command_without_a_word(endpoint: str) -> None:
    with Remora(endpoint, tenant="long", timeout=PATIENCE) as memory:
        memory.conversation("c").append([Message("user", "x" * 1000)] * 500)
    process = begin(endpoint, "log", "c", "--limit", "500", "--tenant", "long")
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline()
    process.stdout.close()

    assert process.stderr.read() == b""
    assert process.wait(PATIENCE) == 1
    process.stderr.close()


@pytest.mark.parametrize("written", ["unix:{0.name}", "unix:{0}", "unix://{0}"])
def test_a_socket_is_found_however_its_path_is_written(
    endpoint: str, written: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(endpoint.removeprefix("unix:"))
    monkeypatch.chdir(path.parent)

    code, output, error = remora(endpoint, "log", "--tenant", "acme", "--endpoint", written.format(path))

    assert (code, error) == (0, "")
    assert b"A trip" in output


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["log", "--endpoint", "unix:/nowhere/s"], 1, "remora: no Remora server answers at unix:/nowhere/s ("),
        (
            ["search", "x", "--all-users", "--endpoint", "nonsense"],
            2,
            "remora: endpoint is 'nonsense'; it must be unix:/path or host:port",
        ),
        (["log", "nowhere"], 1, "remora: there is no conversation 'nowhere', or it is another user's"),
        (["log", "--tenant", "t\xe9n"], 2, "remora: tenant must be printable ASCII"),
        (["log", "--token", "s\xfc\xdf"], 2, "remora: token must be printable ASCII"),
        (["log", "--follow"], 2, "remora: --follow needs a conversation"),
        (["search", "x" * 40_000, "--all-users"], 1, "remora: query has 40,000 bytes; at most 32,768 are allowed"),
        (["log", "--limit", "0"], 2, "0 is not a whole number from 1 on"),
        (["log", "--limit", "1000000001"], 2, "1000000001 is more than 1,000,000,000"),
        (["search", "x", "--limit", "9" * 5_000], 2, "9 is more than 1,000"),
        (["search", "x", "--all-users", "--limit", "1001"], 2, "argument --limit: 1001 is more than 1,000"),
        (["search"], 2, "the following arguments are required: QUERY"),
        (["search", "x"], 2, "say whose messages to search: --user USER, --conversation ID, or --all-users"),
        (["search", "x", "--all-users", "--user", "u"], 2, "--all-users searches all messages: leave out --user and"),
    ],
)
def test_what_cannot_be_shown_is_said_in_one_line(endpoint: str, arguments: list[str], code: int, said: str) -> None:
    ended, output, error = remora(endpoint, *arguments)

    assert (ended, output) == (code, b"")
    assert said in error
    assert error.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("command", [["log"], ["search", "hello", "--all-users"], ["export", "-"], ["context", "list"]])
def test_an_address_for_probes_is_said_to_have_no_data(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    probes = f"127.0.0.1:{free_port()}"
    with serve("--model=none", f"--health-listen={probes}"):
        code = main([*command, f"--endpoint={probes}"])

    assert code == 1
    assert capsys.readouterr().err.startswith(f"remora: the server at {probes} answers no calls for data: name another")


def test_the_tenant_and_the_token_are_taken_from_the_environment(endpoint: str, tmp_path: Path) -> None:
    tokens = token_file(tmp_path / "tokens", "secret acme")
    assert b"trip" in done(endpoint, "log", variables={"REMORA_TENANT": "acme", "REMORA_TOKEN": ""})
    assert done(endpoint, "log", variables={"REMORA_TENANT": ""}) == done(endpoint, "log", "--tenant", "default")

    with serve("--model=none", f"--token-file={tokens}") as guarded:
        assert remora(guarded, "log")[0] == 1
        assert remora(guarded, "log", variables={"REMORA_TOKEN": "secret"})[0] == 0
        assert remora(guarded, "log", "--token", "secret")[0] == 0


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("REMORA_TENANT", "x" * 513, "has 513 bytes; at most 512 are allowed"),
        ("REMORA_TENANT", "a\nb", "must be printable ASCII"),
        ("REMORA_TOKEN", "a\nb", "must be printable ASCII"),
    ],
)
def test_a_wrong_value_from_the_environment_is_told_with_its_variable(
    endpoint: str, variable: str, value: str, said: str
) -> None:
    code, output, error = remora(endpoint, "log", variables={variable: value})

    assert (code, output, error) == (2, b"", f"remora: ${variable} {said}\n")


def test_a_wrong_flag_is_not_told_as_a_variable(endpoint: str) -> None:
    code, _, error = remora(endpoint, "log", "--tenant", "a\nb", variables={"REMORA_TENANT": "acme"})

    assert (code, error) == (2, "remora: tenant must be printable ASCII\n")


@pytest.mark.parametrize("token", [[], ["--token=wrong"]])
def test_a_command_without_the_servers_token_is_told_how_to_give_it(
    token: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tokens = token_file(tmp_path / "tokens", "secret acme")
    with serve("--model=none", f"--token-file={tokens}") as guarded:
        code = main(["log", f"--endpoint={guarded}", *token])

    assert code == 1
    assert "--token or $REMORA_TOKEN gives one" in capsys.readouterr().err
