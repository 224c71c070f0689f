"""The items of LangGraph's SqliteStore, with their vectors."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from msgspec import DecodeError, Struct, json
from rich.console import Console

from remora import Remora
from remora.v1.store_item_pb2 import StoreItem
from remora.v1.transfer_service_pb2 import Record
from remora_server.commands.moving.records import Copied, differences, exported, require_equal, send
from remora_server.commands.moving.sqlite_file import TOO_DEEP, Row, SqliteFile
from remora_server.commands.numbers import counted
from remora_server.commands.output import diagnostics, progress_of_rows
from remora_server.commands.reported import Reported

OWNER = "LangGraph's SqliteStore"
ITEMS, VECTORS = "store", "store_vectors"
TABLES = {ITEMS: ("prefix", "key", "value", "created_at", "updated_at")}
VECTOR_COLUMNS = ("prefix", "key", "field_name", "embedding")
FLOAT_BYTES = 4
SECONDS = 60.0
_OF_ITEM = "WHERE prefix = ? AND key = ? ORDER BY rowid"
_ORPHANS = "AS own WHERE NOT EXISTS (SELECT 1 FROM store AS item WHERE item.prefix = own.prefix AND item.key = own.key)"


class StoreFile(Struct, frozen=True):
    """The items of a file that had not expired at `now`.

    `user_label` says which label of a namespace names the item's user; None: items have no user.
    """

    file: SqliteFile
    has_vectors: bool
    user_label: int | None
    now: datetime

    def unexpired(self) -> Iterator[tuple[StoreItem, Row]]:
        """The items with their rows, by namespace, because the server writes them faster in this order."""
        for row in self.file.rows(ITEMS, "ORDER BY prefix, rowid"):
            if not self._has_expired(row):
                yield self._item(row), row

    def item_of(self, found: StoreItem) -> tuple[StoreItem, Row] | None:
        """The file's item with the key of another one; None if it has none."""
        for row in self.file.rows(ITEMS, _OF_ITEM, (".".join(found.namespace), found.key)):
            item = self._item(row)
            if list(item.namespace) == list(found.namespace) and not self._has_expired(row):
                return item, row
        return None

    def _has_expired(self, row: Row) -> bool:
        expires = row.time_or_none("expires_at")
        return expires is not None and expires <= self.now

    def _item(self, row: Row) -> StoreItem:
        item = StoreItem(namespace=row.text("prefix").split("."), key=row.text("key"), value=_object(row))
        if self.user_label is not None and -len(item.namespace) <= self.user_label < len(item.namespace):
            item.user_id = item.namespace[self.user_label]
        item.create_time.FromDatetime(row.time("created_at"))
        item.update_time.FromDatetime(row.time("updated_at"))
        minutes, expires = row.number_or_none("ttl_minutes"), row.time_or_none("expires_at")
        if minutes is not None:
            _set_ttl(item, row, minutes)
        if expires is not None:
            item.expire_time.FromDatetime(expires)
        if self.has_vectors:
            self._add_vectors(item, row)
        return item

    def _add_vectors(self, item: StoreItem, row: Row) -> None:
        for vector in self.file.rows(VECTORS, _OF_ITEM, (row.text("prefix"), row.text("key"))):
            values = vector.data("embedding")
            if not values or len(values) % FLOAT_BYTES:
                raise vector.fault("embedding", f"has {len(values)} bytes, and is not a vector of 32-bit floats")
            item.vectors.add(path=vector.text("field_name"), values=values)


def copy(client: Remora, file: SqliteFile, user_label: int | None) -> str:
    """Check, copy and compare the items of a file. Returns the report's lines. Raises CommandFailed."""
    has_vectors = bool(file.columns(VECTORS))
    file.require(OWNER, TABLES | ({VECTORS: VECTOR_COLUMNS} if has_vectors else {}))
    items = StoreFile(file, has_vectors, user_label, datetime.now(UTC))
    count = sum(1 for _ in items.unexpired())
    report = Reported(file.name)
    with progress_of_rows() as progress:
        task = progress.add_task("copying", total=count)
        given = (
            (Record(store_item=item), _named(row)) for item, row in progress.track(items.unexpired(), task_id=task)
        )
        copied = send(client, file.name, given, progress.console)
        _compare(client, items, copied, report, progress.console)
    require_equal(copied, report, "item")
    _tell_left_out(items, count)
    return copied.told("item")


def _compare(client: Remora, items: StoreFile, copied: Copied, report: Reported, console: Console) -> None:
    """Compare all of the file's items with what the server has."""
    seen = set()
    for record in exported(client, "store_item", console):
        found = record.store_item
        own = items.item_of(found)
        if own is None:
            continue
        expected, row = own
        seen.add(row.number)
        if names := _differences(expected, found):
            copied.differing.add(_named(row))
            report(f"{_named(row)}: Remora has another {', '.join(names)}")
    for _, row in items.unexpired():
        if row.number not in seen:
            copied.differing.add(_named(row))
            report(f"{_named(row)}: Remora has no such item")


def _differences(expected: StoreItem, found: StoreItem) -> list[str]:
    """In which fields two items differ. Reading an item may have extended its life."""
    if found.HasField("ttl") and found.expire_time.ToMicroseconds() > expected.expire_time.ToMicroseconds():
        expected.expire_time.CopyFrom(found.expire_time)
    return differences(expected, found)


def _named(row: Row) -> str:
    return f"{row.place} (key {row.text('key')!r} in {row.text('prefix')!r})"


def _object(row: Row) -> bytes:
    value = row.data("value")
    try:
        decoded = json.decode(value)
    except DecodeError as error:
        raise row.fault("value", f"is not JSON: {error}") from error
    except UnicodeDecodeError as error:
        raise row.fault("value", "is not UTF-8") from error
    except RecursionError as error:
        raise row.fault("value", TOO_DEEP) from error
    if not isinstance(decoded, dict):
        raise row.fault("value", "is not a JSON object")
    return value


def _set_ttl(item: StoreItem, row: Row, minutes: float) -> None:
    try:
        item.ttl.FromMicroseconds(round(minutes * SECONDS * 1_000_000))
    except (ValueError, OverflowError) as error:
        raise row.fault("ttl_minutes", f"is {minutes}, and too long") from error


def _tell_left_out(items: StoreFile, count: int) -> None:
    expired = items.file.count(ITEMS) - count
    if expired:
        diagnostics().print(f"{counted(expired, 'item had expired and is', 'items had expired and are')} left out")
    orphans = sum(1 for _ in items.file.rows(VECTORS, _ORPHANS)) if items.has_vectors else 0
    if orphans:
        diagnostics().print(
            f"{counted(orphans, 'vector of a deleted item is', 'vectors of deleted items are')} left out"
        )
