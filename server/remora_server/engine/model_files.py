"""The files of all-MiniLM-L6-v2: where they are, and whether they are the right ones."""

from __future__ import annotations

import hashlib
from pathlib import Path

from remora_server.domain.models import BUILTIN_MODEL

MODEL = BUILTIN_MODEL
WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""The digest of the model's weights, which names the model."""
SHA256 = {
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "model.safetensors": WEIGHTS,
}
"""What the model consists of, with the digests of the files that its authors published."""
BLOCK_BYTES = 8 << 20


class ModelFilesError(Exception):
    """The model's files are missing, cannot be fetched, or are not the expected ones."""


def find(model_dir: Path) -> Path | None:
    """The directory, if it holds the model's files; they are not read."""
    return model_dir if all((model_dir / name).is_file() for name in SHA256) else None


def verify(model_dir: Path) -> None:
    """Raise ModelFilesError unless each file is the expected one. Reads all of them: 91 MB, about 0.1 s."""
    for name, expected in SHA256.items():
        if _digest(model_dir / name) != expected:
            raise ModelFilesError(f"{model_dir / name} is not the published file of {MODEL}: install the model again")


def _digest(path: Path) -> str:
    """In few large blocks, each of which needs the interpreter's lock: a start does other things meanwhile."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()
