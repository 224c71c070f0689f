"""Uses the installed packages once: serves a store, writes to it, and reads it back after a restart."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import remora
import remora_server._native as native

PREFIX = Path(sys.prefix)
WAIT_SECONDS = 60.0
TEXT = "Sarah works from Lisbon in May."


@contextmanager
def serve(directory: Path) -> Iterator[remora.Conversation]:
    """Serve the store below the directory, and give a conversation of it."""
    endpoint = f"unix:{directory}/remora.sock"
    command = [str(PREFIX / "bin" / "remora"), "serve", "--data", str(directory / "data"), "--listen", endpoint]
    process = subprocess.Popen(command)
    try:
        with remora.Remora(endpoint, timeout=WAIT_SECONDS) as client:
            yield client.conversation("wheels", user_id="sarah")
    finally:
        process.terminate()
        process.wait(WAIT_SECONDS)


def require(*, fulfilled: bool, otherwise: str) -> None:
    if not fulfilled:
        raise SystemExit(otherwise)


def main() -> None:
    for module in (remora, native):
        place = Path(str(module.__file__))
        require(fulfilled=place.is_relative_to(PREFIX), otherwise=f"{place} is not in the fresh environment")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        with serve(directory) as chat:
            chat.append({"role": "user", "content": TEXT})
        with serve(directory) as chat:
            found = [message.text for message in chat.messages()]
    require(fulfilled=found == [TEXT], otherwise=f"the store held {found} after its restart")


if __name__ == "__main__":
    main()
