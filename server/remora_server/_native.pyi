"""Types of the Rust engine, one section per module of the crate."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, Protocol, Self, TypeAlias, final

from typing_extensions import Buffer

# tokens

def count_tokens(encoding: str, texts: list[str]) -> list[int]:
    """Return the number of tokens of each text: tiktoken's `len(encode(text, disallowed_special=()))`.

    `encoding` is "o200k_base" or "cl100k_base"; ValueError for any other. No text is refused: what looks like a special
    token is text, a surrogate without its other half is U+FFFD. Linear in the text. Other threads of the interpreter
    run during the call.
    """

def approximate_tokens(texts: list[str]) -> list[int]:
    """Return a quarter of each text's characters, rounded up, as LangChain's `count_tokens_approximately` estimates.

    For English chat messages 17 % too many at the median against o200k_base, 2 % to 36 % for nine in ten; for Chinese
    three to four times too few.
    """

def trim_tokens(encoding: str, text: str, max_tokens: int, keep_end: bool = False) -> str:
    """Return the longest prefix (suffix where `keep_end`) of a text, in whole characters, with at most `max_tokens`.

    ValueError for an unknown encoding, OverflowError for a negative `max_tokens`. Where the cut falls into an unbroken
    run of more than 1,024 bytes it may fall short of the longest by some characters; it never has more tokens.
    Surrogates without their other half become U+FFFD.
    """

def encoding_for_model(model: str) -> str | None:
    """Return the name of the encoding that a model of OpenAI reads, None if it is unknown or neither of the two."""

def vocabulary(encoding: str) -> list[bytes]:
    """Return the bytes of each token of an encoding by rank, without special tokens; ValueError if it is unknown."""

# chats

@final
class EncodedMessages:
    """Chat messages in wire form: those that are field 1 of an encoded message, whose other fields are passed over.

    Ranges are half-open: IndexError for messages that are not there. A message is read when it is asked for, ValueError
    if it cannot be; ValueError, too, for bytes that are no message. Safe to share between threads.
    """

    def __new__(cls, encoded: bytes) -> Self: ...
    def __len__(self) -> int: ...
    def costs(self, encoding: str, begin: int, end: int) -> tuple[list[int], list[int]]:
        """Return what each message of a range costs, and the indexes of those that hold more than that.

        It costs 3, and the tokens of its role, text, name (and 1 more for that), and of its tools with their arguments.
        Those hold more whose `media` name anything, or that have only `parts`. Other threads run meanwhile.

        `encoding` is "o200k_base", "cl100k_base" or "approximate"; ValueError for any other.
        """

    def tool_uses(self, begin: int, end: int) -> list[tuple[int, str, bool]]:
        """Return the tool calls and results of a range: the message's index, the id, whether it is a result.

        The calls of a message come before its results.
        """

_PlainMessage: TypeAlias = tuple[int, str, str, bytes, str, int, str, int, str]
"""Sequence, role, text, the whole encoded, name, when it was sent (in microseconds; the create time if the caller gave
none), session id, token count, id.
"""

def plain_message(encoded: bytes) -> _PlainMessage | None:
    """Return a message in wire form, or None if it has tools, parts or media, or is not to be read so."""

def plain_messages(encoded: bytes) -> list[_PlainMessage | bytes]:
    """Return the messages that are field 1 of an encoded message, those that are not plain in wire form.

    ValueError for bytes that are no message.
    """

# lexical

def analyze(text: str) -> list[str]:
    """Return the terms of a text in its order, repeats included: folded, stemmed, without English stop words."""

# vectors

class VectorError(ValueError):
    """A vector is refused, here because its bytes do not divide into values; a subclass says any other reason."""

class ZeroVectorError(VectorError):
    """All values are zero: the vector has no direction, thus no cosine."""

class NotFiniteVectorError(VectorError):
    """A value is infinite or not a number."""

# kernels

def available_kernels() -> list[str]:
    """Return the instruction sets that this processor can run, the slowest first."""

# encoder

class ModelError(Exception):
    """A model cannot be used: a file is missing or malformed, or it is not all-MiniLM-L6-v2."""

@final
class Encoder:
    """all-MiniLM-L6-v2 on the CPU: texts to embeddings of unit length. Safe to share between threads, each call runs on
    one; the GIL is released meanwhile.

    model_dir holds model.safetensors, tokenizer.json and perhaps config.json, which must not change while the encoder
    lives. precision is "f32", or "int8" for a third of the time at a cosine above 0.99 to f32. level is an instruction
    set, "scalar", "neon", "avx2" or "avx512"; the best of the processor if None.

    Raises ModelError if the model cannot be used, ValueError for an unknown precision and for a level that is unknown
    or that the processor lacks.
    """

    def __new__(cls, model_dir: str, precision: str = "f32", level: str | None = None) -> Self: ...
    def encode(self, texts: list[str]) -> bytes:
        """Return the embeddings in the order of the texts, `dimension` little-endian float32 values each.

        What lies beyond `max_tokens` word pieces does not count; the empty text has an embedding too. A lone surrogate
        counts as U+FFFD. The embedding of a text does not depend on the others.
        """

    def encode_with_pieces(self, texts: list[str]) -> tuple[bytes, list[bytes]]:
        """Return what `encode` does and, of the same passes, the word pieces of each text for late interaction.

        A piece is its id, 2 bytes, little-endian, and its code, 128 bytes; all ids come first. The pieces are those
        that say something by themselves (no stop words, no punctuation), or all where none does.
        """

    def unknown_words(self, text: str) -> list[str]:
        """Return the words of a text that are no forms of words of the vocabulary, in lower case: names, rare words,
        typing errors.

        Words are runs of letters, digits and underscores; only those of ASCII letters alone are told.
        """

    def token_vectors(self, text: str) -> tuple[list[int], bytes]:
        """Return the ids of the word pieces, [CLS] first and [SEP] last, and the last hidden state of each: `dimension`
        little-endian float32 values, not normalised.
        """

    @property
    def dimension(self) -> int:
        """Values of an embedding: 384."""

    @property
    def max_tokens(self) -> int:
        """Word pieces of a text that count, the two special ones included: 256."""

    @property
    def precision(self) -> str:
        """What is computed in, "f32" or "int8": f32 also where int8 was asked for and the level has no fast int8."""

    @property
    def level(self) -> str:
        """The instruction set in use."""

# Panics.

def next_panic(timeout: float) -> tuple[str, str, int, int] | None:
    """The oldest panic that was not taken yet, where there is one in so many seconds: its file and line, its thread's
    name where Rust gave it one, the system's number of the thread, and how many before it were not noted.
    """

# Identifiers.

def new_id() -> str:
    """A new UUIDv7 (RFC 9562) as text: unique, and ordered by the millisecond in which it was made."""

# Digests.

def digests(contents: Sequence[bytes]) -> list[int]:
    """Return the BLAKE2b digest (RFC 7693) of 8 bytes of each content, read as a little-endian number."""

# core

class EncoderClosed(Exception):
    """A background encoder was closed before it was done."""

class EncoderPanicked(Exception):
    """A background encoder panicked with one of the texts. It goes on with others."""

@final
class BackgroundEncoder:
    """An encoder's passes in a thread of their own, which may have another priority than those that wait for them. It
    holds nothing that other threads of the process need. One call is answered after the other.

    Raises OSError where the system gives no thread.
    """

    def __new__(cls, encoder: Encoder) -> Self: ...
    def encode(self, texts: list[str]) -> bytes:
        """As Encoder.encode. Raises EncoderClosed, EncoderPanicked."""

    def encode_with_pieces(self, texts: list[str]) -> tuple[bytes, list[bytes]]:
        """As Encoder.encode_with_pieces. Raises EncoderClosed, EncoderPanicked."""

    def close(self) -> None:
        """End the thread after the pass at hand; calls that wait for it fail."""

    @property
    def thread_id(self) -> int:
        """The system's number of the thread; 0 where it has none."""

    @property
    def dimension(self) -> int:
        """Values of an embedding: 384."""

    @property
    def precision(self) -> str:
        """As Encoder.precision."""

    @property
    def level(self) -> str:
        """The instruction set in use."""

class JournalError(Exception):
    """The journal refuses: it cannot be opened, read or written. Subclasses say why where that matters."""

class JournalFull(JournalError):
    """There is no room on the disk. Nothing was written; worth a retry."""

class JournalFailed(JournalError):
    """A write failed, or the journal was closed: it takes nothing more until it is opened again."""

class JournalTimeout(JournalError):
    """Nothing was written: the queue stayed full, or the same request was being committed, until the timeout."""

class JournalBehind(JournalError):
    """Nothing was written: the database is too far behind the journal, and stayed so for two seconds or the timeout."""

class RecordTooLarge(JournalError):
    """The record is larger than the journal takes: 40 MiB, or what fits a segment. Nothing was written."""

class InvalidRecord(JournalError):
    """The record cannot be read, or one of its changes cannot be applied. Nothing was written."""

@final
class Head:
    """A conversation as it is after one record. Times in microseconds since 1970, UTC."""

    def __new__(
        cls,
        *,
        uid: int,
        user_id: str,
        body: bytes,
        create_time: int,
        last_sequence: int,
        message_count: int,
        last_time: int,
        update_time: int,
        revision: int,
    ) -> Self: ...
    @property
    def uid(self) -> int:
        """The revision that created it."""

    @property
    def user_id(self) -> str:
        """The owner."""

    @property
    def body(self) -> bytes:
        """An encoded remora.v1.Conversation with the fields that a caller sets."""

    @property
    def storage_limit(self) -> int | None:
        """How many messages it may hold, as the body says."""

    @property
    def has_short_term(self) -> bool:
        """Whether the body has a policy of the window."""

    @property
    def create_time(self) -> int: ...
    @property
    def last_sequence(self) -> int:
        """The newest sequence ever given."""

    @property
    def message_count(self) -> int: ...
    @property
    def last_time(self) -> int:
        """The create time of the newest message ever appended; 0 where there was none."""

    @property
    def update_time(self) -> int: ...
    @property
    def revision(self) -> int:
        """The revision that last touched it."""

@final
class MessagePage:
    """Selected messages, ascending. All are 0 or empty where the conversation is not there."""

    @property
    def uid(self) -> int:
        """The uid of the conversation that the page is of."""

    @property
    def revision(self) -> int:
        """The page shows everything up to this revision at least."""

    @property
    def encoded(self) -> bytes:
        """The selected messages that are in memory, as entries of field 1 (ListMessagesResponse.messages)."""

    @property
    def count(self) -> int:
        """How many are selected, the missing ones included."""

    @property
    def first_sequence(self) -> int: ...
    @property
    def last_sequence(self) -> int: ...
    @property
    def tokens(self) -> int:
        """The sum of the selected messages' token counts."""

    @property
    def more(self) -> bool:
        """Whether more pass the filters on the far side of the page."""

    @property
    def missing(self) -> list[int]:
        """The sequences of selected messages that are not in `encoded`, ascending; all are older than what is."""

    @property
    def missing_revision(self) -> int:
        """Ask the database for the missing messages only once it has this revision: one may just have been replaced."""

@final
class MessageWeights:
    """What the messages of a window weigh. All are 0 or empty where the conversation is not there."""

    @property
    def uid(self) -> int:
        """The uid of the conversation."""

    @property
    def revision(self) -> int:
        """They show everything up to this revision at least."""

    @property
    def sequences(self) -> list[int]:
        """Of the messages, ascending, without those of the roles that are apart."""

    @property
    def tokens(self) -> list[int]:
        """The token count of each."""

    @property
    def newest_apart(self) -> int:
        """The sequence of the newest message of a role that is apart; 0 if there is none."""

    @property
    def may_use_tools(self) -> bool:
        """Whether one of the messages may call a tool or answer a call. Those that were loaded may."""

def passing_messages(page: bytes, expression: tuple[Any, ...]) -> list[tuple[int, bytes]]:
    """The (sequence, message) of a page's messages whose attributes pass, ascending.

    The page is a list of entries of field 1, the expression as for Recall.search. Raises ValueError for other bytes.
    """

@final
class Recovery:
    """What was found when the journal was opened."""

    @property
    def first_revision(self) -> int:
        """The oldest revision held; last_revision + 1 when none is."""

    @property
    def last_revision(self) -> int: ...
    @property
    def segments(self) -> int: ...
    @property
    def cut(self) -> tuple[str, int, int, str | None] | None:
        """The torn end of the last segment, where there was one: segment, offset, bytes, the file that keeps them; None
        where there was no room for one.
        """

    @property
    def noted_applied(self) -> int:
        """The newest revision known to have been applied: more than the database has where it lost what it had; 0 where
        nothing is known.
        """

@final
class JournalSegment:
    """A file of the journal, as an inspection found it."""

    @property
    def name(self) -> str: ...
    @property
    def first_revision(self) -> int:
        """The first revision that it should hold."""

    @property
    def bytes(self) -> int:
        """The length of the file."""

    @property
    def batches(self) -> int:
        """Whole batches in it."""

    @property
    def records(self) -> int:
        """Records in these."""

    @property
    def sealed(self) -> bool:
        """Whether the journal goes on in another segment."""

@final
class JournalFinding:
    """What is wrong with a journal, and where."""

    @property
    def segment(self) -> str:
        """The file's name; empty where there is none."""

    @property
    def offset(self) -> int: ...
    @property
    def bytes(self) -> int:
        """How many bytes are of no use; 0 where that is not known."""

    @property
    def reason(self) -> str: ...
    @property
    def torn_end(self) -> bool:
        """A torn end, never acknowledged: the next start cuts it. Anything else keeps the journal from being opened."""

@final
class JournalInspection:
    """What a journal's directory holds, however damaged."""

    @property
    def store_id(self) -> bytes | None:
        """The store that was asked for, else that of the first segment that names one."""

    @property
    def segments(self) -> list[JournalSegment]:
        """Oldest first."""

    @property
    def findings(self) -> list[JournalFinding]: ...
    @property
    def first_revision(self) -> int:
        """The oldest revision held; last_revision + 1 where there is none."""

    @property
    def last_revision(self) -> int:
        """The newest revision of a whole batch."""

    @property
    def missing(self) -> list[tuple[int, int]]:
        """Revisions, first and last, that should be there and cannot be read."""

    @property
    def refused(self) -> bool:
        """Whether opening the journal refuses it."""

    @property
    def noted_published(self) -> int | None:
        """The newest revision known to have been synced; None where nothing is known."""

    @property
    def noted_applied(self) -> int | None:
        """The newest revision known to have been applied; None where nothing is known."""

    @property
    def note_unreadable(self) -> bool:
        """Whether the note of these two is there and cannot be read."""

def inspect_journal(
    directory: str | PathLike[str], *, store_id: bytes | None, applied_revision: int
) -> JournalInspection:
    """Read a whole journal without changing anything.

    `applied_revision` is what the database has: the journal must join it. Raises JournalError where the directory
    cannot be read, or a store has it open.
    """

def salvage_journal(
    directory: str | PathLike[str],
    keep: Callable[[int, bytes], object],
    *,
    store_id: bytes | None,
    applied_revision: int,
) -> JournalInspection:
    """The same, and call `keep` with the revision and payload of every record that can be read, in order of revisions.

    What `keep` raises ends the reading and is raised. Batches that are whole, and whole records of damaged ones.
    """

@final
class JournalStatistics:
    """What the journal holds, and what this process wrote."""

    @property
    def bytes(self) -> int:
        """Bytes on disk, preallocated ones included."""

    @property
    def segments(self) -> int: ...
    @property
    def records(self) -> int: ...
    @property
    def batches(self) -> int: ...
    @property
    def sync_micros(self) -> int:
        """Mean duration of an fdatasync in microseconds."""

    @property
    def refusing(self) -> str | None:
        """Why records are refused for want of room, or of file descriptors."""

@final
class EngineStatistics:
    """What is in memory."""

    @property
    def conversations(self) -> int: ...
    @property
    def window_bytes(self) -> int: ...
    @property
    def partitions(self) -> int:
        """Partitions of records, wholly or in part."""

    @property
    def record_bytes(self) -> int: ...
    @property
    def parts(self) -> int: ...
    @property
    def recall_bytes(self) -> int: ...
    @property
    def vector_parts(self) -> int:
        """Partitions of vectors."""

    @property
    def vector_bytes(self) -> int: ...
    @property
    def kernels(self) -> str: ...

@final
class Core:
    """The journal and what follows it in memory. Safe to share between threads; other threads run while a call waits.

    A record is a remora_server.storage.v1.Record in wire form. Writers plan from what is accepted, readers see what is
    published, that is synced. The journal's directory is free again when the last reference is gone.
    """

    def __new__(
        cls,
        directory: str | PathLike[str] | None,
        *,
        store_id: bytes,
        applied_revision: int,
        start_after: int | None = None,
        segment_bytes: int = 67_108_864,
        queue_bytes: int = 16_777_216,
        window_bytes: int = 67_108_864,
        recall_bytes: int = 268_435_456,
        kernels: str | None = None,
        kinds: Sequence[RecordKind] = ...,
        record_bytes: int = 67_108_864,
        vector_bytes: int = 268_435_456,
    ) -> Self:
        """Open the journal of a directory, or begin one; None for one in memory.

        `store_id` is 16 bytes and `applied_revision` what the database has. Records beyond it are to be applied and
        marked before anything is loaded: until then every load is refused. An empty directory begins at revision 1, or
        behind `start_after`, as after a restore. JournalError, with segment and offset, where
        the journal is damaged, foreign, locked, or does not join `applied_revision`.
        """

    @property
    def recovery(self) -> Recovery: ...
    @property
    def recall(self) -> Recall: ...
    @property
    def vectors(self) -> Vectors: ...
    @property
    def items(self) -> Items: ...
    def accepted(self) -> int:
        """Return the newest revision that was given out."""

    def published(self) -> int:
        """Return the newest revision that is on disk and visible."""

    def has_ended(self) -> bool:
        """Return whether nothing will be published any more."""

    def follow(self, changed: Callable[[], object]) -> bool:
        """Have `changed` called whenever something was published and when the journal ends, in the thread that does it.
        Returns False where another follows already.
        """

    def failure(self) -> str | None:
        """Return why the journal takes nothing more; None while it does."""

    def is_whole(self) -> bool:
        """Return False once a panic may have left half of a change in memory: nothing of memory is shown any more."""

    def close(self) -> None:
        """Write what is queued and accept nothing more. JournalFailed where it could not be written."""

    def commit(self, record: bytes, timeout: float | None) -> tuple[int, str]:
        """Accept a record and apply it in memory.

        Returns its revision and "committed". Without writing anything: the revision of the first and "repeated" where
        its request id was committed with the same fingerprint, "reused" where with another. Waits at most `timeout`
        seconds (None: without end) while the queue is full or another commit of its request is under way, and two
        seconds at most while the database is too far behind.
        Raises JournalFull, JournalFailed, JournalTimeout, JournalBehind, RecordTooLarge, InvalidRecord: nothing was
        written then.
        """

    def wait(self, revision: int, timeout: float | None) -> bool:
        """Wait until a revision is published; return whether it is. JournalFailed where it never will be."""

    def find_request(self, tenant: str, request_id: str, fingerprint: bytes) -> tuple[int, bool] | None:
        """Return the revision of the request's first commit, and whether its fingerprint (16 bytes) is the same.

        Ids are remembered for an hour, whatever the wall clock says, at most 1,000,000; the oldest are forgotten first.
        """

    def load_requests(self, requests: Sequence[tuple[str, str, bytes, int, int]]) -> None:
        """Take in requests from the database: tenant, request id, fingerprint, revision and age in microseconds, in
        the order of revisions. They are known when the load ends.
        """

    def end_load_of_requests(self) -> None:
        """Say that the database has no request that was neither loaded nor committed since the start."""

    def has_loaded_requests(self) -> bool:
        """Return whether the load has ended: before, the database may know a request that is not found."""

    def oldest_request(self) -> int | None:
        """Return the revision of the oldest request that is remembered: the ids of all before it are forgotten.

        None where none is remembered, or the load has not ended.
        """

    def records_after(self, revision: int, max_bytes: int) -> list[tuple[int, bytes]]:
        """Return the published records after a revision, oldest first, of at most `max_bytes`, but at least one."""

    def unapplied_bytes(self) -> int:
        """Return how many bytes of published records are in memory, which `mark_applied` takes out of it."""

    def is_behind(self) -> bool:
        """Return whether the database is so far behind the journal that commits wait for it."""

    def mark_applied(self, revision: int, *, durable: bool = True) -> None:
        """Say that the database has everything up to a revision, so that it may leave memory; not `durable`: only until
        it is closed.
        """

    def release(self, revision: int) -> None:
        """Say that records up to a revision are checkpointed in the database and will not be asked for again."""

    def journal_statistics(self) -> JournalStatistics: ...
    def know_conversations(self, keys: Sequence[tuple[str, str]]) -> None:
        """Say which (tenant, conversation id) are in the database: at start."""

    def conversation_state(self, tenant: str, conversation_id: str) -> str:
        """Return "resident", "cold" (perhaps in the database: load it) or "absent"; it counts as a use.

        A resident conversation may be known not to be there: its head is None.
        """

    def load_conversation(
        self,
        tenant: str,
        conversation_id: str,
        head: Head | None,
        messages: Sequence[tuple[int, int, str, str, str, int, int, int]],
        bodies: Sequence[bytes],
        *,
        as_of: int,
        with_journal: bool = False,
    ) -> bool:
        """Make a conversation resident as the database has it, `with_journal` with what was published since.

        `messages` are all that it holds, ascending: (sequence, revision, user id, id, role, create time, sent time (the
        create time where there is none), token count).
        `bodies` are the newest of them as they are served, ascending. A head of None: it is known not to be there.
        `as_of` is the applied revision, read before the database was asked. Returns False where the conversation
        changed since, or is not applied that far: wait until everything accepted is applied, ask the database again.
        A conversation that is resident stays as it is. ValueError where there are more bodies than messages.
        """

    def follow_unapplied(self, applied: int, *, now: int) -> int:
        """Follow in memory what was published after revision `applied`, as commits did; once, before any commit. `now`
        is what the wall clock shows, in microseconds since 1970. Returns how many records that were.
        """

    def unapplied(self, tenant: str, after: int) -> Unapplied | None:
        """Return what was published of a tenant's parts after a revision; None where the journal has released some of
        it, because it is applied by now.
        """

    def head(self, tenant: str, conversation_id: str, *, accepted: bool) -> Head | None:
        """Return the head that writers build on, or that readers see; None where there is no conversation.

        Raises KeyError where the conversation is cold, as the following do.
        """

    def find_messages(
        self, tenant: str, conversation_id: str, user_id: str, ids: Sequence[str]
    ) -> list[tuple[int, int] | None]:
        """Return (sequence, create time) of each of a user's accepted messages, None for one that is not there."""

    def live_sequences(self, tenant: str, conversation_id: str, user_id: str | None) -> list[int]:
        """Return the sequences of a user's accepted messages (None: of all users), ascending."""

    def oldest_messages(self, tenant: str, conversation_id: str, count: int) -> list[tuple[int, str]]:
        """Return (sequence, user id) of the oldest accepted messages."""

    def list_messages(
        self,
        tenant: str,
        conversation_id: str,
        user_id: str,
        *,
        roles: Sequence[str],
        sent: tuple[int | None, int | None],
        received: tuple[int | None, int | None],
        after_sequence: int | None,
        before_sequence: int | None,
        window: tuple[int, int],
        newest: bool,
        limit: int,
        max_bytes: int,
    ) -> MessagePage:
        """Return the newest (or oldest) published messages of a user that pass the filters, given ascending.

        Times (after, before; microseconds; a message is `received` when it is created) and sequences are exclusive; no
        roles: all. At most `limit`, and as many as
        `max_bytes` of `encoded` hold, but at least one.
        """

    def weigh_messages(
        self, tenant: str, conversation_id: str, user_id: str, window: tuple[int, int], apart: list[str]
    ) -> MessageWeights:
        """Return what published messages of a user weigh: those from the first sequence of a window on, and the one
        with the second, which is before it or 0.

        Messages of the roles `apart` are not counted.
        """

    def get_record(
        self,
        kind: int,
        tenant: str,
        conversation_uid: int,
        partition: bytes,
        key: bytes,
        *,
        accepted: bool,
        now: int = 0,
    ) -> tuple[StoredRecord | None, int]:
        """Return a record, None where it is not there, and the revision that this shows.

        Where `accepted`, it is what writers build on, expired ones included; else what readers see at `now`. Raises
        ColdRecords where neither the record nor that it is not there is known: load the key.
        """

    def knows_record(self, kind: int, tenant: str, conversation_uid: int, partition: bytes, key: bytes) -> bool | None:
        """Return whether writers find a record, one that has expired included; None where memory does not say."""

    def list_records(
        self,
        kind: int,
        tenant: str,
        conversation_uid: int,
        partition: bytes,
        *,
        order: int,
        newest: bool = False,
        after: _RecordPosition | None = None,
        before: _RecordPosition | None = None,
        where: Sequence[tuple[int, _RecordValue]] = ...,
        last: int | None = None,
        skip: int = 0,
        limit: int,
        max_bytes: int,
        now: int,
    ) -> RecordPage:
        """Return the first records of an order (0: of keys), or the last where `newest`, that readers see at `now`.

        `after` and `before` are exclusive. `where` names columns by their index and what they hold. `last` narrows
        first to the last so many that pass; `skip` counts from where the page begins. The page ends at `limit` records
        or at `max_bytes` of bodies in memory, but has one record where there is one. Raises ColdRecords where the range
        is not in memory.
        """

    def count_records(
        self,
        kind: int,
        tenant: str,
        conversation_uid: int,
        partition: bytes,
        *,
        where: Sequence[tuple[int, _RecordValue]] = ...,
        now: int,
    ) -> tuple[int, int]:
        """Return how many records readers see at `now`, and the revision that this shows.

        Raises ColdRecords where not all of the partition is in memory.
        """

    def load_records(
        self,
        kind: int,
        tenant: str,
        conversation_uid: int,
        partition: bytes,
        rows: Sequence[tuple[Any, ...]],
        *,
        absent: Sequence[bytes] = ...,
        order: int = 0,
        complete_from: _RecordPosition | None = None,
        complete_to: _RecordPosition | None = None,
        whole: bool = False,
        as_of: int,
    ) -> bool:
        """Take records of the database into memory, beneath what is there; False where it must be asked again.

        A row is key, revision, ordinal, user_id, expire_time, upload_id, body (None where it was not asked for) and the
        kind's columns. `absent` are keys that were asked for and not found. `whole` says that the rows are all of the
        partition; `complete_from` that they are all from this position on in `order`, up to `complete_to` (exclusive;
        None: to the end), which was ColdRecords.after. `as_of` is what had been applied before the database was asked.
        """

    def kind_touched(self, kind: int) -> int:
        """Return the newest accepted revision that touched records of a kind; 0 where none did in this process."""

    def refresh_record(
        self,
        kind: int,
        tenant: str,
        conversation_uid: int,
        partition: bytes,
        key: bytes,
        *,
        revision: int,
        expire_time: int | None,
        now: int,
    ) -> bool:
        """Set the expire time of the record with this revision in memory, where it stays until the journal has it.

        False where this is not the newest record of its key, or it is not in memory.
        """

    def take_refreshed(self, *, older_than: int, now: int) -> list[tuple[int, str, int, bytes, bytes, int, int | None]]:
        """Return the records whose expire time the journal lacks, and which were refreshed at `older_than` or before.

        They are (kind, tenant, conversation_uid, partition, key, revision of the record, expire_time). Until a
        SetExpiry with that time is accepted they count as refreshed at `now`.
        """

    def unapplied_expiries(self, kind: int, tenant: str) -> tuple[int, list[tuple[bytes | None, bytes | None, bytes]]]:
        """Return the expire times of records of a kind that memory shows and the database may lack, as columns.

        They are place, tenant_id, conversation_uid, partition, key, revision of the record, expire_time, laid out as
        those of `Rows.table`.
        """

    def statistics(self) -> EngineStatistics: ...

# records

_RecordValue: TypeAlias = bool | int | float | str | bytes | None

_RecordPosition: TypeAlias = tuple[_RecordValue, ...]
"""Where a record stands in an order: its key in order 0, else the columns of the order, revision and ordinal."""

@final
class StoredRecord:
    """A record in memory."""

    @property
    def key(self) -> bytes: ...
    @property
    def revision(self) -> int: ...
    @property
    def ordinal(self) -> int:
        """Its place among the changes of its revision."""

    @property
    def user_id(self) -> str: ...
    @property
    def expire_time(self) -> int | None:
        """Microseconds since 1970, UTC."""

    @property
    def upload_id(self) -> str:
        """Where set, the body is that of the parts uploaded under this id."""

    @property
    def columns(self) -> _RecordPosition: ...
    @property
    def body(self) -> bytes | None:
        """None where only the database has it."""

@final
class RecordPage:
    """Selected records, ascending."""

    @property
    def revision(self) -> int:
        """The page shows everything up to this revision."""

    @property
    def more(self) -> bool:
        """Whether more pass on the far side."""

    @property
    def count(self) -> int: ...
    @property
    def records(self) -> list[StoredRecord]:
        """They are made when they are asked for."""

    @property
    def encoded(self) -> bytes | None:
        """The bodies as entries of field 1; None where one is not in memory, or was uploaded in parts."""

class ColdRecords(KeyError):
    """What is asked for is not in memory."""

    after: _RecordPosition | None
    """From where on it is, in the order asked for; None where nothing is known."""

@final
class RecordKind:
    """A declared sort of record."""

    def __new__(
        cls,
        number: int,
        *,
        columns: Sequence[Literal["bool", "int64", "double", "text", "bytes"]],
        orders: Sequence[Sequence[int]],
        of_conversation: bool,
        of_user: bool,
        is_searched: bool = False,
        holds_items: bool = False,
    ) -> Self:
        """`number` is written in the journal and belongs to this kind for good; it is not 0.

        Order 0 is that of the keys of a partition. `orders` are the further ones: columns, by their index, of which no
        record has a null; records that are alike in them follow each other as they were written. Records of a kind
        `of_conversation` go with their conversation; those of one that `is_searched` are vectors, those of one that
        `holds_items` items of the store. ValueError where an order names a column that is not there.
        """

    @property
    def number(self) -> int: ...

def place(tenant: str, conversation_uid: int, partition: bytes) -> int:
    """Return the hash of 64 bits by which the database finds a partition. It never changes."""

# rows

@final
class Rows:
    """What a run of records makes of the database's tables. Add them in order of revision."""

    def __new__(cls, kinds: Sequence[RecordKind] = ...) -> Rows: ...
    def add(self, revision: int, payload: bytes) -> None:
        """Take in the next record.

        Raises ValueError where it cannot be decoded or applied, or holds a change or a kind that is not known: what is
        there is of no use.
        """

    def table(self, name: str) -> tuple[int, list[tuple[bytes | None, bytes | None, bytes]]]:
        """How many rows there are for a table, and its columns as Arrow lays them out: validity, where rows may have no
        value, offsets of 64 bits, where values have no fixed size, and values.

        conversations, heads, messages, embeddings and requests have the database's columns; deleted,
        replaced_conversations, replaced_heads, moved and cleared the keys of what goes before the others come.

        The records of kind n have, in the order in which they are to be written:

        - n.prefixes: tenant_id, conversation_uid and the beginning of partitions that go,
        - n.partitions: place, tenant_id, conversation_uid and partition of those that go,
        - n.users: tenant_id and user_id of whose records go,
        - n.moved: place, tenant_id, conversation_uid, partition and key of records that go or are replaced,
        - n.expiry: place, tenant_id, conversation_uid, partition, key and revision of records that stay, if they are
          there, and the expire_time that they get,
        - n.records: tenant_id, conversation_uid, place, partition, key, user_id, revision, ordinal, expire_time,
          upload_id, the kind's columns, body.

        Records of a kind that belongs to conversations also go with those of `deleted`.

        Raises KeyError for other names.
        """

# recall

@final
class RecallHit:
    """A message that was found."""

    @property
    def uid(self) -> int:
        """Its conversation."""

    @property
    def sequence(self) -> int: ...
    @property
    def conversation_id(self) -> str: ...
    @property
    def score(self) -> float:
        """In the profile's own measure."""

    @property
    def components(self) -> list[tuple[str, float, float]]:
        """(name, value, weight): the sum of value times weight, from left to right, is the score."""

    @property
    def encoded(self) -> bytes:
        """The message as it is served."""

    @property
    def before(self) -> Beside:
        """Its user's messages before it in its conversation, by sequence: as many as the search asked for."""

    @property
    def after(self) -> Beside:
        """Those after it, likewise."""

@final
class Beside:
    """Messages on one side of one that was found. Each is copied when it is asked for."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> bytes: ...

@final
class SearchResult:
    """What a search found."""

    @property
    def hits(self) -> list[RecallHit]:
        """Best first; ties by (uid, sequence)."""

    @property
    def pending(self) -> int:
        """How many messages of the scope have text, came without a vector, and have none of the model yet."""

    @property
    def background(self) -> tuple[float, float, float, float]:
        """Of a hybrid search: how many messages the scope has, what the query's words weigh together (idf), what those
        weigh that one message has, at most, and the mean cosine. Zeros of others.
        """

    @property
    def complete(self) -> bool:
        """Whether the whole scope was in memory; where it was not, load it and search again.

        For a tenant: whether all of those of its users were who are in memory at all.
        """

@final
class VectorLoad:
    """A load of a partition's vectors: until it is finished nobody sees them."""

    def fill(self, rows: Sequence[tuple[bytes, bytes]]) -> int:
        """Give keys and bodies that the database has, and return the bytes of memory that the load takes so far."""

    def finish(self) -> None:
        """Say that it has everything that the database has. ValueError where it has ended."""

    def abandon(self) -> None:
        """Forget it, unless it is finished."""

@final
class Vectors:
    """The vectors of kinds that are searched, by partitions. Safe to share between threads.

    Commits reach it through the core and never wait for a search. To load a partition: `begin`, wait until the database
    has everything that touched the kind by then, read the database, fill, finish. ColdVectors where a partition is not
    in memory; `expression` is as for Recall.search.
    """

    def begin(self, kind: int, tenant: str, partition: bytes, user_id: str, *, by_words: bool) -> VectorLoad:
        """Begin a load of a user's partition, in the place of any other. `by_words`: texts are searched, too."""

    def search(
        self,
        kind: int,
        tenant: str,
        partition: bytes,
        vector: Buffer,
        *,
        k: int,
        threshold: float | None,
        expression: tuple[Any, ...] | None,
    ) -> tuple[list[tuple[float, bytes]], int]:
        """Return the scores and bodies of the nearest vectors, ties by key, and the revision that they show.

        ValueError for a vector that is not finite.
        """

    def search_text(
        self,
        kind: int,
        tenant: str,
        partition: bytes,
        text: str,
        vector: Buffer | None,
        *,
        k: int,
        threshold: float | None,
        expression: tuple[Any, ...] | None,
        comparable: tuple[Any, ...] | None,
    ) -> tuple[list[tuple[float, bytes]], int]:
        """Return the scores, from 0 to 1, and bodies of what answers a text best, ties by key, and the revision.

        The vector of the text is compared with those that pass `comparable`; without one, words alone count, and what
        shares none is not found. ValueError for a vector that is not finite.
        """

    def count(self, kind: int, tenant: str, partition: bytes, *, expression: tuple[Any, ...] | None) -> tuple[int, int]:
        """Return how many vectors pass, and the revision that this shows."""

    def keys(self, kind: int, tenant: str, partition: bytes, *, expression: tuple[Any, ...] | None) -> list[bytes]:
        """Return the keys of the vectors that pass, in any order."""

class ColdVectors(KeyError):
    """The vectors are not in memory."""

@final
class ItemLoad:
    """A load of a tenant's items, which is abandoned unless it is finished."""

    def fill(self, rows: Sequence[tuple[bytes, bytes, bytes, int, int | None]]) -> int:
        """Take in items of the database: namespace, key, body, revision, expire time. Return the bytes taken so far."""

    def finish(self) -> None:
        """Say that all of the database's are there."""

    def abandon(self) -> None:
        """End the load, unless it is finished."""

@final
class Items:
    """The items of the store, by tenants. Safe to share between threads.

    Commits reach it through the core and never wait for a search. To load a tenant's items: `begin`, wait until the
    database has everything that touched the kind by then, read the database, fill, finish. ColdItems where they are not
    in memory. `now` is in microseconds: what has expired by then is not seen. `skip` and `limit` say which of the found
    are returned.
    """

    def begin(self, kind: int, tenant: str) -> ItemLoad:
        """Begin a load, in the place of any other."""

    def search(
        self,
        kind: int,
        tenant: str,
        prefix: bytes,
        *,
        expression: tuple[Any, ...] | None,
        query: tuple[str, Buffer, str] | None,
        skip: int,
        limit: int,
        now: int,
        refresh: bool,
    ) -> tuple[list[tuple[float | None, bytes, tuple[bytes, bytes], int, int | None]], int]:
        """Return what is found in the namespaces that begin with a prefix, and the revision that this shows.

        `expression` is as for Recall.search; its keys are paths, as JSON arrays of their steps. `query`: a model, a
        vector, and `cosine`, `inner_product` or `l2`; without one, the newest come first. Of each: its score, the item
        as replies have it, its namespace and key, its revision, and until when it lives if `refresh` has it live on.
        ValueError for a vector that is not finite.
        """

    def namespaces(
        self,
        kind: int,
        tenant: str,
        *,
        matches: Sequence[tuple[str, Sequence[str]]],
        max_depth: int | None,
        skip: int,
        limit: int,
        now: int,
    ) -> tuple[list[list[str]], bool, int]:
        """Return the labels of namespaces, whether more follow, and the revision that this shows.

        `matches`: each is `prefix` or `suffix`, and labels, of which `*` is any.
        """

    def created(self, kind: int, tenant: str, places: Sequence[tuple[bytes, bytes]], *, now: int) -> list[int | None]:
        """Return when the items at some places (namespace and key) were created; None where none is."""

    def expired(self, kind: int, tenant: str, *, now: int) -> list[tuple[bytes, bytes]]:
        """Return the namespaces and keys of what has expired."""

class ColdItems(KeyError):
    """The items are not in memory."""

@final
class Unapplied:
    """The changes of a tenant's parts that the database lacks."""

    def users(self) -> list[str]:
        """Return whose parts have changed."""

    def parts(self, user_id: str) -> list[tuple[int, str]]:
        """Return the uids of a user's changed parts, and their conversations' ids."""

@final
class Recall:
    """The messages of active users in memory, searched by vectors and words. Safe to share between threads.

    A part is what one user has of one conversation (its uid). A scope is a part (`user_id` and `uid`), all parts of
    a user (no `uid`), or all of a tenant that are in memory (neither). Commits reach it through the core and never wait
    for a search; a search shows them up to the revision `published`.

    To load: begin, wait until the database has everything up to the revision that `begin_part` returns, or `revision()`
    as it is after beginning, read the database, fill. Each `begin_part` that returns a tuple, and each uid that
    `declare_parts` returns, is followed by a last `fill_part` (through None) or by `abandon`; each `begin_user` that
    returns True by one `finish_user` or `abandon`. Several may load the same at once. What was loaded or searched stays
    for at least a second, beyond the budget if need be.
    """

    def revision(self) -> int:
        """Return the newest revision that reached recall."""

    def has_part(self, tenant: str, user_id: str, uid: int) -> bool:
        """Return whether all of a part is in memory."""

    def begin_part(self, tenant: str, user_id: str, uid: int) -> tuple[int, int] | None:
        """Return the revision that the database must have, and the sequence through which the part is loaded.

        None where all of it is in memory.
        """

    def begin_user(self, tenant: str, user_id: str) -> bool:
        """Return whether the caller must list the user's parts in the database and declare them; False if all are in
        memory.
        """

    def hold_user(self, tenant: str, user_id: str) -> bool:
        """Keep a user's parts in memory until `release_user`. Returns False where not all of them are there."""

    def release_user(self, tenant: str, user_id: str) -> None:
        """End what a `hold_user` that returned True began."""

    def declare_parts(self, tenant: str, user_id: str, uids: Sequence[int]) -> list[tuple[int, int]]:
        """Return which of the user's parts the caller must fill, and the sequence through which each is loaded."""

    def finish_user(self, tenant: str, user_id: str) -> None:
        """Say that all declared parts are filled."""

    def fill_part(
        self,
        tenant: str,
        user_id: str,
        uid: int,
        conversation_id: str,
        messages: Sequence[bytes],
        embeddings: Sequence[Sequence[tuple[str, bytes, bool, bytes]]],
        *,
        through: int | None,
        unapplied: Unapplied | None = None,
    ) -> None:
        """Give what the database has of a part, from behind what is loaded through a sequence (None: all of the rest):
        messages as they are served, the vectors of each; and what it lacks.

        A vector is (model, little-endian f32, whether the caller made it, word pieces or b""), at most one a model, of
        the message's present revision. ValueError unless there is one list of vectors a message.
        """

    def abandon(self, tenant: str, user_id: str, uid: int | None) -> None:
        """Say that a load ended early: of a part, or of the user where `uid` is None. What is loaded stays."""

    def bytes_in_memory(self) -> int:
        """Return the memory that everything here takes, also what is loaded in part."""

    def bytes_of(self, tenant: str, *, user_id: str | None, uid: int | None) -> int:
        """Return the memory that the scope takes, also what is loaded in part."""

    def speakers(self, tenant: str, *, user_id: str | None, uid: int | None, published: int) -> list[str]:
        """Return the names of those who speak in the scope, in order; never user, assistant or another usual role.

        A message without a name is spoken by its role.
        """

    def pending(self, tenant: str, *, user_id: str | None, uid: int | None, model: str, published: int) -> int:
        """Return how many messages of the scope have text, came without a vector, and have none of the model yet."""

    def dimensions(self, tenant: str, *, user_id: str | None, uid: int | None, model: str, published: int) -> list[int]:
        """Return the dimensions of the vectors of a model that the scope holds, in order, each once."""

    def search(
        self,
        tenant: str,
        *,
        user_id: str | None,
        uid: int | None,
        text: str,
        doubtful: Sequence[str],
        source: tuple[int, int] | None,
        vector: Buffer | None,
        pieces: bytes,
        model: str,
        profile: str,
        k: int,
        threshold: float | None,
        weights: dict[str, float],
        half_life: float | None,
        roles: Sequence[str],
        sent: tuple[int | None, int | None],
        received: tuple[int | None, int | None],
        expression: tuple[Any, ...] | None,
        exclude: Sequence[tuple[int, int]],
        without_roles: Sequence[str],
        seen: Sequence[tuple[int, int]],
        around: int,
        published: int,
    ) -> SearchResult:
        """Return the best `k` messages of the scope.

        `profile` is hybrid, vector ((1 + cosine) / 2, only messages with a vector of the model) or lexical (BM25, only
        messages that share a word). hybrid is cosine + 0.3 * words and the rules that have a weight; words is
        (BM25 / max(best BM25, half of what a message of average length with all words gets))^1.5. Without a vector the
        weight of words is 1, and messages that score 0 are left out. Statistics and the best are those of the scope,
        before `roles`, `without_roles`, times (after, before; microseconds, exclusive), the `expression` and `seen`
        (uid, sequence). Messages in `exclude` are no candidates either, and count as if they had no words and no
        vector. `half_life`, in seconds, is that of the component recency. `around` says how many messages before and
        after each hit come with it.

        In hybrid and hybrid_late, a word of the text that is `doubtful` (in lower case, 5 to 32 ASCII letters), and
        that no message has which may be found, is searched for as the one that most have of the words that differ by
        one typing error, with 0.8 of its weight. `source` is the message whose text this is: that it has a word says
        nothing. Names of speakers, identifiers and contractions are not corrected.

        An expression on attributes is ("all" | "any", [expression, ...]), ("not", expression) or ("condition", key,
        operator, values), with values of None, bool, int, float or str; at most 32 levels deep.

        hybrid_late is as hybrid, with the weight late (0 unless set) for how well a message's word pieces cover
        `pieces`, those of the query; it is on the scale of the cosine, which stands in where a message has no pieces.

        `weights` replaces hybrid's own by component: cosine (1) and bm25 (0.3), then the rules, 0 unless set: answer
        (what these and late give the question before this message), next (what they give the message after it), speaker
        (1 if the question names who speaks; names then count less as words), temporal (1 if it speaks of a time
        and the question asks when), date (how well it meets a date that the question names), named (1 if it names
        something and the question asks for a name), passage (as bm25, of the message and up to two neighbours on each
        side together), session (the best around it in its session), nearby (the best of those neighbours);
        exact (how much of its words' weight a message has, to the power of 8) counts beside bm25, and newer (what a
        message lacks to go before one of the best that says the same and is older) last.
        ValueError for an unknown name or weight and for bytes that are no pieces, VectorError for a vector without
        direction.
        """

def strip_names(texts: Sequence[str], speakers: Sequence[str]) -> list[str]:
    """Return the texts without the speakers' names, for embedding messages and questions about them.

    Names go as whole words, in either case, with a possessive "'s" and the blanks that they leave. Role words and
    single letters are no names, and a text of nothing else stays as it is.
    """

# transport

class _Publication(Protocol):
    """Says what is published, as `Core` does. Revisions only grow."""

    def published(self) -> int: ...
    def has_ended(self) -> bool: ...
    def follow(self, changed: Callable[[], None]) -> bool: ...

@final
class Subscription:
    """Messages that wait for the reader of a stream. Any thread puts them."""

    def push(self, message: bytes) -> bool:
        """Put an encoded message behind the others; False where the stream has ended, also for want of room for it."""

    def close(self, failure: tuple[int, str, bytes] | None = None) -> None:
        """End the stream behind what was put: well, or with a failure."""

@final
class Tls:
    """What TCP ports show and ask for, in PEM: the server's certificate with those of intermediate authorities behind
    it, its key and, where clients must show certificates, the authorities that may have signed them.

    What cannot be used raises ValueError with two arguments: the name of the argument, and why.
    """

    def __new__(cls, chain: bytes, key: bytes, client_ca: bytes | None = None) -> Tls: ...
    def replace(self, chain: bytes, key: bytes, client_ca: bytes | None = None) -> None:
        """Greet new connections with others. Where those cannot be used, the old ones stay."""

    @staticmethod
    def expiry(chain: bytes) -> int:
        """When the first certificate ends, in seconds since 1970."""

@final
class Transport:
    """gRPC over HTTP/2. It is bound, started, run by one thread and worked for by others, and stopped, each once."""

    def __new__(
        cls,
        *,
        room: int,
        connections: int,
        peer_connections: int,
        receive_limit_bytes: int,
        default_timeout: float,
        handshake_timeout: float | None = None,
        request_bytes: int | None = None,
        reply_bytes: int | None = None,
        connection_reply_bytes: int | None = None,
        pending_resets: int | None = None,
        flows: int | None = None,
        connection_flows: int | None = None,
    ) -> Transport:
        """Bounds that are None are the usual ones."""

    def bind_unix(self, path: str) -> None:
        """Take a Unix socket, whose mode the umask gives. OSError where it cannot be had."""

    def bind_tcp(self, address: str, port: int) -> int:
        """Take a port of an IP address, a free one for 0, and return it. OSError where it cannot be had."""

    def set_health(self, service: str, serving: bool) -> None:
        """Say whether a service serves, to all who ask for its health or watch it."""

    def start(
        self,
        *,
        methods: Sequence[tuple[str, str, Callable[[bytes, Any, float | None, str], object]]],
        identify: Callable[[str, str, list[str] | None], object],
        report: Callable[[str], object],
        refusals: Mapping[str, tuple[int, str, bytes]],
        publication: _Publication | None,
        connected: Callable[[int, int, int], object] | None = None,
        pages: Callable[[str], tuple[int, str, bytes] | None] | None = None,
        tls: Tls | None = None,
        larger: Mapping[str, tuple[int, tuple[int, str, bytes]]] | None = None,
    ) -> None:
        """Prepare to serve.

        `larger` has the paths of methods whose messages may be longer than `receive_limit_bytes`: how long, and the
        failure that answers a longer one. Decompressed messages have that limit all the same.

        `methods` are paths with how calls are answered and by what: quick (in the thread of `run` with no time to
        wait, else in one of `work`), pool (in one of `work`), each (every message of a stream by one message, in
        `work`) or stream (by a stream of messages, opened in `work`). The callable gets the encoded request, the
        caller, the seconds that it may take and the header `traceparent`. It returns the encoded reply and the revision
        that must be published before the reply is sent, or a failure: its code, message and encoded
        `google.rpc.Status`. Where the seconds are None and it would have to wait, it returns None, has had no effect,
        and is called again with time.

        A callable that streams returns a source and None or, where messages are pushed, a `Subscription` of this
        transport; or a failure. A source has `next`, which is called in `work` when the reader has room for a message
        and returns it encoded, None at the end, or a failure; and `close`, which is called once in `work` when nothing
        is asked for any more.

        `identify` gets the headers `authorization` and `remora-tenant`, empty where they are not there, and the names
        in the certificate of the connection, None where it needed none; it returns the caller or a failure. A caller
        is remembered. `report` is told of trouble that no caller learns of, `connected` who has
        connected over a Unix socket: the ids of the user, its group and the process. `refusals`
        holds the failures of calls that find no room (`overloaded`), or none that is left for their peer
        (`peer_overloaded`), that are not answered in time (`deadline_exceeded`), whose revision will not be published
        (`not_published`), that met a panic (`internal`), of streams that the end of the server ends (`stopping`), and
        of those whose reader was too slow (`slow_reader`); of requests that break gRPC's protocol (`malformed`, whose
        text is replaced by how), that are too long (`too_large`), or compressed in a way that is not known
        (`unknown_compression`), and of calls of no method (`unknown_method`). Without a publication, nothing is waited
        for; that of a `Core` is asked without the interpreter.

        With `pages`, the TCP ports answer GET and HEAD over HTTP/1.1, too, one request a connection: it gets the path
        without its query, in one of two threads, and returns the page's status, content type and body, or None where
        there is no such page. With `tls`, the TCP ports speak TLS, and answer no pages.
        """

    @staticmethod
    def bounds() -> list[float]:
        """The upper bounds of the buckets of `calls`, in seconds, rising."""

    def forget_callers(self) -> None:
        """Have every caller told anew by `identify`."""

    def calls(self) -> list[tuple[str, list[int], list[int], float, int, int]]:
        """The calls of each method that was called since `start`, but for health.

        The path, empty for calls of no method; how many ended with each code of gRPC, by its number (who went away
        counts as 1, CANCELLED); how many took at most each of `bounds`, and longer, each in one bucket; the seconds
        that all of them took; how many are under way; and how many of these wait for a thread.
        """

    def subscription(self) -> Subscription:
        """A stream that waits, with nothing to read yet."""

    def run(self) -> None:
        """Serve in the calling thread until `stop`. OSError where the sockets cannot be used.

        It may be called again where it failed.
        """

    def work(self) -> None:
        """Answer calls in the calling thread until `run` has returned."""

    def stop(self, grace: float) -> None:
        """Have `run` take no more calls, give those under way so many seconds, and return."""

    def close(self) -> None:
        """Let go of the addresses, and have `work` return."""
