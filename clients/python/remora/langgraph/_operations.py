"""LangGraph's operations on items as requests, and the results of these as LangGraph's. Makes no calls."""

import json
import re
import struct
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from difflib import get_close_matches
from itertools import groupby
from numbers import Integral
from typing import Any, TypeAlias, cast

from langgraph.store.base import (
    GetOp,
    IndexConfig,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    get_text_at_path,
    tokenize_path,
    validate_op_namespace,
)

from remora import _refusals
from remora._requests import REQUEST_BYTES
from remora.errors import FieldViolation, InvalidFieldError
from remora.langgraph._filters import item_filter
from remora.v1 import store_service_pb2 as wire
from remora.v1.store_item_pb2 import ItemKey, ItemVector, StoreItem

LARGEST_PAGE = 1_000
MOST_SKIPPED = MOST_LABELS = 2**31 - 1
"""What the contract has for an offset and a depth: more skips, or keeps, no more."""
MOST_AT_ONCE = 10_000
"""Operations of one request."""
OWN_MODEL = "remora"
"""`embed` of an index whose texts the server's model embeds."""

_INDEX_KEYS = frozenset({"dims", "embed", "fields", "text_fields", "distance_type", "ann_index_config"})
_TTL_KEYS = frozenset({"refresh_on_read", "omit_expired", "default_ttl", "sweep_interval_minutes"})
_LEAST_TTL = 1_000
_MOST_MINUTES = 5_256_000
"""Ten years, which the contract allows."""
_VALUE_BYTES = 2 << 20
_SIMILARITIES = {
    "cosine": wire.SIMILARITY_COSINE,
    "inner_product": wire.SIMILARITY_INNER_PRODUCT,
    "l2": wire.SIMILARITY_L2,
}

_ARGUMENTS = tuple(
    (re.compile(path), argument)
    for path, argument in (
        (r"^(put|delete|get\.key|search|list_namespaces)\.", ""),
        (r"^text$", "query"),
        (r"^vectors\[(\d+)\]\.text$", r"embedded text \1"),
        (r"^vectors$", "the list of embedded texts"),
        (r"^matches\[(\d+)\]\.(prefix|suffix)\.labels", r"match_conditions[\1].path"),
        (r"^matches$", "match_conditions"),
        (r"^filter\..*\.values\[\d+\]\.text$", "a text in filter"),
        (r"^filter\..*\.steps\[\d+\]$", "a name in filter"),
        (r"^filter\..*\.steps$", "a path in filter"),
        (r"^filter\..*$", "filter"),
    )
)
"""Paths in operations on the wire, with the names of LangGraph's arguments, applied one after the other."""

Vectors: TypeAlias = dict[str, bytes]
"""Texts with their vectors."""


class Index:
    """How the texts of items become vectors. `fields`, or `text_fields`, are the paths of texts in the values."""

    def __init__(self, config: IndexConfig) -> None:
        given = cast("dict[str, Any]", config)
        _refuse_misspelt(given, _INDEX_KEYS, "index")
        distance = given.get("distance_type") or "cosine"
        if distance not in _SIMILARITIES:
            raise ValueError(f"distance_type is one of {', '.join(_SIMILARITIES)}, not {distance!r}")
        self.similarity = _SIMILARITIES[distance]
        self.dims = given.get("dims")
        self.is_server_side = given.get("embed") in (None, OWN_MODEL)
        fields = given.get("fields") or given.get("text_fields") or ["$"]
        self._paths = _paths(fields, "fields of the index")

    def texts(self, op: PutOp) -> list[tuple[str, str]]:
        """The paths and the texts of an item's vectors."""
        if op.index is False or op.value is None:
            return []
        paths = self._paths if op.index is None else _paths(op.index, "index")
        return [found for path, tokens in paths for found in _texts_at(op.value, path, tokens)]

    def embeds(self, op: Op) -> bool:
        """Whether an operation needs a vector."""
        match op:
            case SearchOp():
                return bool(op.query)
            case PutOp():
                return bool(self.texts(op))
        return False

    def packed(self, vector: Sequence[float]) -> bytes:
        """A vector as the contract has it. Raises ValueError if it has another dimension than the index says."""
        if self.dims and len(vector) != self.dims:
            raise ValueError(f"the embedding has {len(vector)} dimensions, and the index says {self.dims}")
        try:
            return struct.pack(f"<{len(vector)}f", *vector)
        except (struct.error, OverflowError) as error:
            shown = _refusals.shown_alone(vector)
            raise ValueError(f"embed gave {shown}; it must give numbers that 32 bits can hold") from error


def check_user_label(label: object) -> None:
    """Raises TypeError for what is no place of a label."""
    if label is not None and (isinstance(label, bool) or not isinstance(label, int)):
        raise TypeError(f"user_label is {label!r}; it must be a whole number: 0 is the first label, -1 the last")


def check_ttl(config: TTLConfig | None) -> None:
    """Raises TypeError and ValueError for what is no ttl: a key that is nearly a known one, a wrong value."""
    given = cast("dict[str, Any]", config or {})
    _refuse_misspelt(given, _TTL_KEYS, "ttl")
    if given.get("default_ttl") is not None:
        _microseconds(given["default_ttl"], "default_ttl")
    for name in ("refresh_on_read", "omit_expired"):
        if not isinstance(given.get(name), bool | None):
            raise TypeError(f"{name} of ttl is {given[name]!r}; it must be True or False")
    sweep_seconds(given.get("sweep_interval_minutes"))


def sweep_seconds(minutes: object) -> float | None:
    """Seconds between two sweeps; None where it is not said, or 0. Raises ValueError for what is no such number."""
    match minutes:
        case None | 0:
            return None
        case bool():
            pass
        case int() | float() if 0 < minutes <= _MOST_MINUTES:
            return 60.0 * minutes
    raise ValueError(f"sweep_interval_minutes is {minutes!r}; it must be a number of minutes above 0")


def _refuse_misspelt(given: dict[str, Any], known: Collection[str], name: str) -> None:
    """Raises ValueError for a key that is nearly a known one; others are another store's, and passed over."""
    if not isinstance(given, dict):
        raise TypeError(f"{name} is {given!r}; it must be a dict with {', '.join(sorted(known))}")
    what = f"{'an' if name == 'index' else 'a'} {name}"
    for key in given.keys() - known:
        for meant in get_close_matches(key, known, n=1, cutoff=0.75):
            raise ValueError(f"{what} has no key {key!r}; did you mean {meant!r}?")


def _microseconds(minutes: object, name: str) -> int:
    """How long an item lives. Raises ValueError for what is no number of minutes, below 0, or more than ten years."""
    match minutes:
        case bool():
            pass
        case int() | float() if 0 <= minutes <= _MOST_MINUTES:
            return max(_LEAST_TTL, round(minutes * 60_000_000))
    raise ValueError(f"{name} is {minutes!r}; it must be a number of minutes, from 0 to {_MOST_MINUTES:,} (ten years)")


def _paths(paths: object, name: str) -> list[tuple[str, list[str] | str]]:
    """Paths of texts with their tokens. Raises TypeError for one text, whose letters would be taken for paths."""
    if isinstance(paths, str) or not isinstance(paths, Iterable):
        remedy = f"[{paths!r}]" if isinstance(paths, str) else '["text"]'
        raise TypeError(f"{name} is {paths!r}; it must be a list of paths, such as {remedy}")
    for path in paths:
        if not isinstance(path, str):
            raise TypeError(f"{name} has {path!r}; a path is a text, such as 'text'")
    return [(path, _tokens(path)) for path in paths]


def _tokens(path: str) -> list[str] | str:
    """A path as `get_text_at_path` takes it: `$` is the whole value."""
    return path if path == "$" else tokenize_path(path)


def _texts_at(value: object, path: str, tokens: list[str] | str) -> list[tuple[str, str]]:
    texts = [text for text in get_text_at_path(value, tokens) if text]
    names = [path] if len(texts) == 1 else [f"{path}.{number}" for number in range(len(texts))]
    return list(zip(names, texts, strict=True))


@dataclass(frozen=True, slots=True)
class Rest:
    """What a reply had no room for, or more than it may have: of the operation at `index`."""

    index: int
    op: Op


@dataclass(slots=True)
class Batch:
    """Operations that have been checked. `to_embed` are the texts, and `queries` the queries, that need a vector.

    `sees_expired`: the reads find what has expired until it is swept. `callers` says of each operation which of several
    callers asked for it; empty: they are all one's.
    """

    ops: Sequence[Op]
    index: Index | None = None
    user_label: int | None = None
    sees_expired: bool = False
    callers: Sequence[int] = ()
    to_embed: list[str] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    _texts: dict[int, list[tuple[str, str]]] = field(default_factory=dict)
    _values: dict[int, bytes] = field(default_factory=dict)
    _lifetimes: dict[int, int | None] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        given: Iterable[Op],
        index: Index | None,
        user_label: int | None,
        *,
        sees_expired: bool = False,
        callers: Sequence[int] = (),
    ) -> "Batch":
        """Raises InvalidNamespaceError, TypeError and ValueError before anything is done."""
        ops = [_with_labels(op) for op in given]
        for op in ops:
            _refuse_one_text(op)
            _refuse_no_number(op)
            validate_op_namespace(op)
        batch = cls(ops, index, user_label, sees_expired, callers)
        for at, op in batch._puts():
            batch._values[at] = _json(op)
            if len(batch._values[at]) > _VALUE_BYTES:
                raise ValueError(_too_long(op, len(batch._values[at])))
            batch._lifetimes[at] = None if op.ttl is None else _microseconds(op.ttl, "ttl")
            batch._texts[at] = index.texts(op) if index else []
        if index is not None and not index.is_server_side:
            texts = (text for found in batch._texts.values() for _, text in found)
            batch.to_embed = list(dict.fromkeys(texts))
            searches = (op.query for op in ops if isinstance(op, SearchOp) and op.query)
            batch.queries = list(dict.fromkeys(searches))
        return batch

    def _puts(self) -> Iterable[tuple[int, PutOp]]:
        """The writes that put an item."""
        puts = ((at, cast("PutOp", self.ops[at])) for at in self._writes())
        return [(at, op) for at, op in puts if op.value is not None]

    def _writes(self) -> list[int]:
        """The writes that take effect: of several of one item, the last."""
        last = {(tuple(op.namespace), op.key): at for at, op in enumerate(self.ops) if isinstance(op, PutOp)}
        return sorted(last.values())

    def requests(self, vectors: Vectors, queries: Vectors) -> Iterable[tuple[list[int], wire.ExecuteOperationsRequest]]:
        """The requests, mostly one, and which operations are in each: the reads come first."""
        reads = [at for at, op in enumerate(self.ops) if not (isinstance(op, PutOp) or self._reaches_nothing(at))]
        writes = [at for at in self._writes() if not self._reaches_nothing(at)]
        # What follows the first page is read by itself: no write may come before that.
        begins = writes[0] if writes and any(_has_pages(self.ops[at]) for at in reads) else None
        request, held, size = wire.ExecuteOperationsRequest(), list[int](), 0
        for together in self._undivided(reads, writes, vectors, queries):
            taken, count = _size(together), len(held) + len(together)
            if held and (size + taken > REQUEST_BYTES or count > MOST_AT_ONCE or begins in together):
                yield held, request
                request, held, size = wire.ExecuteOperationsRequest(), [], 0
            request.operations.extend(together.values())
            held.extend(together)
            size += taken
        if held:
            yield held, request

    def _undivided(
        self, reads: Iterable[int], writes: Iterable[int], vectors: Vectors, queries: Vectors
    ) -> Iterable[dict[int, wire.Operation]]:
        """What one request must have together: each read, and a caller's writes, unless they are more than it takes."""
        for at in reads:
            yield {at: self._encoded(at, vectors, queries)}
        for _, several in groupby(writes, lambda at: self.callers[at] if self.callers else 0):
            together = {at: self._encoded(at, vectors, queries) for at in several}
            if _size(together) > REQUEST_BYTES or len(together) > MOST_AT_ONCE:
                yield from ({at: operation} for at, operation in together.items())
            else:
                yield together

    def _reaches_nothing(self, at: int) -> bool:
        """Whether an operation gets or deletes what no item can be: LangGraph allows that, and finds nothing."""
        op = self.ops[at]
        return isinstance(op, GetOp | PutOp) and at not in self._values and not (op.namespace and op.key)

    def _encoded(self, at: int, vectors: Vectors, queries: Vectors) -> wire.Operation:
        """An operation on the wire. Raises ValueError for a text that UTF-8 cannot hold."""
        try:
            return self._operation(at, vectors, queries)
        except UnicodeEncodeError as error:
            raise ValueError(f"{error.object!r} {_half(error)}") from error

    def _operation(self, at: int, vectors: Vectors, queries: Vectors) -> wire.Operation:
        match self.ops[at]:
            case GetOp() as op:
                key = ItemKey(namespace=op.namespace, key=op.key)
                read = wire.ItemRead(key=key, refresh_expiry=op.refresh_ttl, include_expired=self.sees_expired)
                return wire.Operation(get=read)
            case SearchOp() as op:
                return wire.Operation(search=self._search(op, queries))
            case ListNamespacesOp() as op:
                query = _namespace_query(op)
                query.include_expired = self.sees_expired
                return wire.Operation(list_namespaces=query)
            case PutOp() as op if at in self._values:
                return wire.Operation(put=self._item(at, op, vectors))
            case PutOp() as op:
                return wire.Operation(delete=ItemKey(namespace=op.namespace, key=op.key))
        raise ValueError(f"Unknown operation type: {type(self.ops[at])}")

    def _search(self, op: SearchOp, queries: Vectors) -> wire.ItemSearch:
        search = wire.ItemSearch(
            namespace_prefix=op.namespace_prefix,
            filter=item_filter(op.filter) if op.filter else None,
            limit=min(op.limit, LARGEST_PAGE),
            skip=_skipped(op),
            refresh_expiry=op.refresh_ttl,
            include_expired=self.sees_expired,
        )
        if op.query and self.index:
            search.similarity = self.index.similarity
            if self.index.is_server_side:
                search.text = op.query
            else:
                search.vector = queries[op.query]
        return search

    def _item(self, at: int, op: PutOp, vectors: Vectors) -> StoreItem:
        item = StoreItem(namespace=op.namespace, key=op.key, value=self._values[at])
        if self.user_label is not None and -len(op.namespace) <= self.user_label < len(op.namespace):
            item.user_id = op.namespace[self.user_label]
        lifetime = self._lifetimes[at]
        if lifetime is not None:
            item.ttl.FromMicroseconds(lifetime)
        for path, text in self._texts[at]:
            if self.index is not None and self.index.is_server_side:
                item.vectors.append(ItemVector(path=path, text=text))
            else:
                item.vectors.append(ItemVector(path=path, values=vectors[text]))
        return item

    def told(self, error: InvalidFieldError, held: Sequence[int]) -> InvalidFieldError:
        """What the server said of a request, with the names of LangGraph's arguments."""
        violations = [
            FieldViolation(self._argument(each.field, held), each.description) for each in error.field_violations
        ]
        text = "; ".join(map(str, violations)) or error.message
        told = type(error)(
            text, code=error.code, reason=error.reason, metadata=error.metadata, field_violations=violations
        )
        told.request_id, told.sent = error.request_id, error.sent
        return told

    def _argument(self, field: str, held: Sequence[int]) -> str:
        """A field of an operation; which operation that is, if there are several."""
        found = re.match(r"operations\[(\d+)\]\.(.+)", field)
        if found is None:
            return field
        argument = found[2]
        for path, name in _ARGUMENTS:
            argument = path.sub(name, argument)
        return argument if len(self.ops) == 1 else f"{argument} of ops[{held[int(found[1])]}]"

    def results(self, held: Sequence[int], response: wire.ExecuteOperationsResponse) -> list[tuple[int, Result]]:
        """The results of a request, by the places of their operations."""
        return [(at, _result(self.ops[at], found)) for at, found in zip(held, response.results, strict=True)]

    def rests(self, held: Sequence[int], response: wire.ExecuteOperationsResponse) -> list[Rest]:
        """What is still to be asked for."""
        found = []
        for at, result in zip(held, response.results, strict=True):
            op = _rest_of(self.ops[at], result)
            if op is not None:
                found.append(Rest(at, op))
        return found


def _size(operations: Mapping[int, wire.Operation]) -> int:
    """Their bytes in a request."""
    return sum(operation.ByteSize() for operation in operations.values())


def _has_pages(op: Op) -> bool:
    """Whether an operation may find more than one reply has."""
    return isinstance(op, SearchOp | ListNamespacesOp) and op.limit > LARGEST_PAGE


def _rest_of(op: Op, result: wire.OperationResult) -> Op | None:
    """The operation that reads what is missing of a result; None if nothing is."""
    match op:
        case GetOp():
            return op if result.truncated else None
        case SearchOp():
            count = len(result.hits.hits)
            missing = op.limit - count
            is_cut = result.truncated or count == LARGEST_PAGE
            return op._replace(offset=op.offset + count, limit=missing) if is_cut and missing > 0 else None
        case ListNamespacesOp():
            count = len(result.namespaces.namespaces)
            missing = op.limit - count
            is_cut = result.truncated or count == LARGEST_PAGE
            return op._replace(offset=op.offset + count, limit=missing) if is_cut and missing > 0 else None
    return None


def joined(first: Result, rest: Result) -> Result:
    """The result of an operation whose rest was read by itself; a list is lengthened."""
    if not isinstance(first, list):
        return rest
    first.extend(cast("list[Any]", rest))
    return first


def _result(op: Op, found: wire.OperationResult) -> Result:
    match op:
        case GetOp():
            return _item_of(found.item) if found.HasField("item") else None
        case SearchOp(limit=limit):
            return [_search_item_of(hit) for hit in found.hits.hits] if limit > 0 else []
        case ListNamespacesOp(limit=limit):
            return [tuple(each.labels) for each in found.namespaces.namespaces] if limit > 0 else []
    return None


def _skipped(op: SearchOp | ListNamespacesOp) -> int:
    return min(op.offset, MOST_SKIPPED)


def _namespace_query(op: ListNamespacesOp) -> wire.NamespaceQuery:
    depth = min(op.max_depth or 0, MOST_LABELS)
    query = wire.NamespaceQuery(max_depth=depth, limit=min(op.limit, LARGEST_PAGE), skip=_skipped(op))
    for condition in op.match_conditions or ():
        labels = wire.LabelPattern(labels=condition.path)
        if condition.match_type == "prefix":
            query.matches.add(prefix=labels)
        elif condition.match_type == "suffix":
            query.matches.add(suffix=labels)
        else:
            raise ValueError(f"Unsupported match type: {condition.match_type}")
    return query


def _json(op: PutOp) -> bytes:
    """An item's value as JSON. Raises TypeError and ValueError, with the item's key, for what JSON does not have."""
    what = f"the value of {op.key!r} in {op.namespace}"
    if isinstance(op.value, list | tuple):
        raise TypeError(f"{what} is {_refusals.shown(op.value)}; it must be a dict")
    try:
        members = dict(cast("Any", op.value))
    except (TypeError, ValueError) as error:
        raise TypeError(f"{what} is {_refusals.shown(op.value)}; it must be a dict") from error
    try:
        return json.dumps(members, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{what} {_half(error)}") from error
    except (TypeError, ValueError) as error:
        raise type(error)(f"{what} must be JSON, and {_culprit(members)} is not: {error}") from error
    except RecursionError as error:
        raise ValueError(f"{what} is nested too deeply, in {_culprit(members)}") from error


def _culprit(members: dict[str, Any]) -> str:
    """The first member that is no JSON."""
    for name, value in members.items():
        try:
            json.dumps({name: value}, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            return repr(name)
    return "the whole"


def _half(error: UnicodeEncodeError) -> str:
    half = f"U+{ord(error.object[error.start]):04X}"
    return f"has half of a surrogate pair, {half}, which UTF-8 cannot hold; replace it, or decode the text again"


def _with_labels(op: Op) -> Op:
    """An operation whose conditions have labels: LangGraph's own tests give a text where one label is meant."""
    if not isinstance(op, ListNamespacesOp) or not op.match_conditions:
        return op
    return op._replace(match_conditions=tuple(map(_of_labels, op.match_conditions)))


def _of_labels(condition: MatchCondition) -> MatchCondition:
    path: object = condition.path
    return MatchCondition(condition.match_type, (path,)) if isinstance(path, str) else condition


def _refuse_one_text(op: Op) -> None:
    """Raises InvalidNamespaceError for a text in the place of labels: its letters would be taken for labels."""
    match op:
        case GetOp() | PutOp():
            refuse_one_text(op.namespace)
        case SearchOp():
            refuse_one_text(op.namespace_prefix)


def refuse_one_text(namespace: object) -> None:
    """The same, of a namespace or its beginning."""
    if not isinstance(namespace, tuple | list):
        example = namespace if isinstance(namespace, str) else "users"
        raise InvalidNamespaceError(f"namespace is {namespace!r}; it must be a tuple of labels, such as ({example!r},)")


def _refuse_no_number(op: Op) -> None:
    """Raises TypeError for a limit or an offset that is no whole number, or a depth that is neither that nor None; and
    InvalidFieldError for an offset below 0. The server refuses other numbers below 0.
    """
    numbers = {name: getattr(op, name) for name in ("limit", "offset", "max_depth") if hasattr(op, name)}
    for name, number in numbers.items():
        if name == "max_depth" and number is None:
            continue
        if isinstance(number, bool) or not isinstance(number, Integral):
            raise TypeError(f"{name} is {number!r}; it must be a whole number")
        if name == "offset" and number < 0:
            raise _refusals.invalid(name, f"is {number}; it must be at least 0")


def _too_long(op: PutOp, size: int) -> str:
    return f"the value of {op.key!r} in {op.namespace} has {size:,} bytes as JSON; at most {_VALUE_BYTES:,} are allowed"


def _item_of(item: StoreItem) -> Item:
    return Item(
        value=json.loads(item.value),
        key=item.key,
        namespace=tuple(item.namespace),
        created_at=item.create_time.ToDatetime(UTC),
        updated_at=item.update_time.ToDatetime(UTC),
    )


def _search_item_of(hit: wire.ItemHit) -> SearchItem:
    item = hit.item
    return SearchItem(
        namespace=tuple(item.namespace),
        key=item.key,
        value=json.loads(item.value),
        created_at=item.create_time.ToDatetime(UTC),
        updated_at=item.update_time.ToDatetime(UTC),
        score=hit.score if hit.HasField("score") else None,
    )
