"""Reads YAML. The library is imported when it is first needed, because that slows a start."""

from __future__ import annotations

from typing import Any


class NotYaml(ValueError):
    """A text is not YAML; the message says where."""


def read_yaml(text: str) -> Any:  # noqa: ANN401 - what YAML holds
    """The value that a text stands for. Raises NotYaml, also for a mapping with a key twice (YAML 1.2, 3.2.1.3), for
    more levels than fit the interpreter's stack, and for dates and numbers that Python cannot hold.
    """
    import yaml  # noqa: PLC0415 - see the module's first line

    class UniqueKeys(yaml.SafeLoader):
        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            lines: dict[str, int] = {}
            for key, _ in node.value:
                if isinstance(key, yaml.ScalarNode):
                    line = key.start_mark.line + 1
                    if key.value in lines:
                        raise NotYaml(f"{key.value} is there twice, in line {lines[key.value]} and in line {line}")
                    lines[key.value] = line
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(text, UniqueKeys)  # noqa: S506 - it is a SafeLoader
    except (yaml.YAMLError, ValueError) as error:
        raise NotYaml(str(error)) from error
    except RecursionError as error:
        raise NotYaml("it is nested too deeply") from error
