"""Reads YAML. The library is imported when it is first needed, because that slows a start."""

from __future__ import annotations

from typing import Any


class NotYaml(ValueError):
    """A text is no YAML; the message says where."""


def read_yaml(text: str) -> Any:  # noqa: ANN401 - what YAML holds
    """The value that a text stands for. Raises NotYaml."""
    import yaml  # noqa: PLC0415 - see the module's first line

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise NotYaml(str(error)) from error
