"""Why a write of records is refused. Each service maps these to its own errors."""

from __future__ import annotations


class RecordNotFound(Exception):
    """What a record belongs to, or an upload, is not there. `partition` is that of the record, or of the upload."""

    def __init__(self, kind: str, partition: bytes) -> None:
        super().__init__(f"there is no such record of {kind}")
        self.kind, self.partition = kind, partition


class BodyTooLong(Exception):
    """A record's body is longer than those of its kind may be."""

    def __init__(self, kind: str, limit: int) -> None:
        super().__init__(f"a record of {kind} has at most {limit} bytes")
        self.kind, self.limit = kind, limit


class UploadNamed(Exception):
    """A record has named the upload: its parts do not change any more."""

    def __init__(self, upload_id: str) -> None:
        super().__init__(f"the upload {upload_id} has been named by a record")
        self.upload_id = upload_id


class RevisionMismatch(Exception):
    """Another write came first: the record has another revision than is expected. 0: the record does not exist."""

    def __init__(self, expected: int, found: int) -> None:
        super().__init__(f"the record is at revision {found}, not {expected}")
        self.expected, self.found = expected, found
