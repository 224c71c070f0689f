"""An agent that says something every ten seconds and shows what it remembers. Put a model in its place."""

import os
import signal
import threading

from remora import Remora

PAUSE_SECONDS = 10.0


def main() -> None:
    """Talk until SIGTERM. The client reads REMORA_ENDPOINT by itself."""
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    with Remora(token=os.environ.get("REMORA_TOKEN")) as memory:
        chat = memory.conversation("hello", user_id="example")
        while not stopping.is_set():
            chat.append({"role": "user", "content": "What did I say before?"})
            context = chat.context(max_tokens=1000)
            chat.append({"role": "assistant", "content": f"I remember {len(context.messages)} messages."})
            print(chat.messages()[-1].text, flush=True)
            stopping.wait(PAUSE_SECONDS)


if __name__ == "__main__":
    main()
