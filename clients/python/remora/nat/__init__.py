"""Remora as a memory of NVIDIA's NeMo Agent Toolkit: `_type: remora` in a workflow's configuration.

The toolkit finds the plugin by its entry point, `remora.nat.register`. `RemoraEditor` is the MemoryEditor that a
workflow gets; it can also be made by hand, with a client of its own:

    editor = RemoraEditor(AsyncRemora())
"""

try:
    import nat.memory.interfaces  # noqa: F401 - to say what is missing
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "remora.nat needs NVIDIA's NeMo Agent Toolkit; install it with: pip install 'remora[nat]'", name=error.name
    ) from error

from remora.nat.editor import MissingUserError, RemoraEditor
from remora.nat.items import RemoraMemoryItem
from remora.nat.register import RemoraMemoryConfig

__all__ = ["MissingUserError", "RemoraEditor", "RemoraMemoryConfig", "RemoraMemoryItem"]
