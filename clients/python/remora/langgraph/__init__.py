"""Remora as the memory of LangGraph's agents. Needs `remora[langgraph]`."""

try:
    import langgraph.checkpoint.base  # noqa: F401 - whether it is there
except ImportError as error:
    raise ImportError(
        "remora.langgraph needs LangGraph's packages: pip install 'remora[langgraph]'", name=error.name
    ) from error

from remora.langgraph.saver import RemoraSaver
from remora.langgraph.store import AsyncRemoraStore, RemoraStore
from remora.langgraph.summarization import SummarizationNode

__all__ = ["AsyncRemoraStore", "RemoraSaver", "RemoraStore", "SummarizationNode"]
