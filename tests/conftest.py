"""What all tests share: where the embedding model is, and how Hypothesis searches."""

import os
from pathlib import Path

import hypothesis

ROOT = Path(__file__).resolve().parent.parent

# `make setup` fetches the model there; the environment may name another directory.
os.environ.setdefault("REMORA_MODEL_DIR", str(ROOT / ".cache" / "model"))

# Tests run beside others on small machines: how long an example takes is no property of the code.
hypothesis.settings.register_profile("remora", deadline=None, print_blob=True)
hypothesis.settings.load_profile("remora")
