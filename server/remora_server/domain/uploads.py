"""Values that are too long for one request: they are uploaded in parts first, and a write then names the upload."""

from __future__ import annotations

PART_BYTES = 1 << 20
"""The length of the longest part. Of a value of a checkpoint, every part except the last one has this length."""
UNNAMED_SECONDS = 3600
"""How long parts stay that no write names."""
