# Derived from remora/_async/receipts.py by tools/derive_sync.py. Do not edit: edit that, and run `make gen`.
"""The receipts of contexts and searches."""

from typing import Annotated, TypeAlias

from remora._arguments import checked
from remora._bounds import OF_CLIENT, Id, Limit, Name, Timeout
from remora._sync.calls import Calls, page_size
from remora.receipts import ContextDiff, Receipt, Replay
from remora.v1 import memory_service_pb2 as wire

ReceiptId: TypeAlias = Annotated[str, Name(128)]
"""The `receipt_id` of a context or of a search's result, 1 to 128 bytes."""


@checked
class Receipts:
    """What contexts and searches were made of: each leaves a receipt, for as long as the server's `receipt_days` says.

    A receipt that is not there raises ReceiptNotFoundError: it has expired, its user was deleted, or the server was
    killed before it was written. With `user_id` it must be this user's.
    """

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def get(self, receipt_id: ReceiptId, *, user_id: Id | None = None, timeout: Timeout = OF_CLIENT) -> Receipt:
        """The receipt `receipt_id`."""
        request = wire.GetReceiptRequest(receipt_id=receipt_id, user_id=user_id or "")
        response = self._calls.read(self._calls.stubs.memory.GetReceipt, request, timeout)
        return Receipt.from_proto(response.receipt)

    def list_receipts(
        self,
        *,
        user_id: Id | None = None,
        conversation_id: Id | None = None,
        limit: Limit | None = 100,
        timeout: Timeout = OF_CLIENT,
    ) -> list[Receipt]:
        """Receipts without their items and requests, the newest first: at most `limit` (None: all).

        Only those of the user `user_id`, of contexts and searches of the conversation `conversation_id`. Each page of
        1,000 has the timeout.
        """
        request = wire.ListReceiptsRequest(
            user_id=user_id or "", conversation_id=conversation_id or "", page_size=page_size(limit)
        )
        method = self._calls.stubs.memory.ListReceipts
        found = self._calls.items(method, request, lambda page: page.receipts, limit=limit, timeout=timeout)
        return [Receipt.from_proto(receipt) for receipt in found]

    def replay(self, receipt_id: ReceiptId, *, user_id: Id | None = None, timeout: Timeout = OF_CLIENT) -> Replay:
        """The reply of the receipt `receipt_id` again, from the messages as they were then.

        Nothing is searched and nothing is ranked. What was erased since is left out and named.
        """
        receipt = self.get(receipt_id, user_id=user_id, timeout=timeout)
        request = wire.ReplayContextRequest(receipt_id=receipt_id, user_id=user_id or "")
        response = self._calls.read(self._calls.stubs.memory.ReplayContext, request, timeout)
        return Replay.from_proto(response, receipt.max_tokens)

    def diff(
        self, before: ReceiptId, after: ReceiptId, *, user_id: Id | None = None, timeout: Timeout = OF_CLIENT
    ) -> ContextDiff:
        """What came in, went out and changed from the receipt `before` to the receipt `after`, and why."""
        request = wire.DiffContextsRequest(before_receipt_id=before, after_receipt_id=after, user_id=user_id or "")
        response = self._calls.read(self._calls.stubs.memory.DiffContexts, request, timeout)
        return ContextDiff.from_proto(response)
