"""What a test opens on a server: it waits for each call as long as it takes."""

from __future__ import annotations

from functools import partial

from tests.patience import PATIENCE

from remora import Remora
from remora.langgraph import RemoraSaver, RemoraStore

patient_client = partial(Remora, timeout=PATIENCE)
patient_saver = partial(RemoraSaver, timeout=PATIENCE)
patient_store = partial(RemoraStore, timeout=PATIENCE)
