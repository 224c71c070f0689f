"""What a vector is: little-endian f32, of at least one dimension."""

from __future__ import annotations

FLOAT_BYTES = 4
MAX_DIMENSION = 4_096
