"""A server with a port for probes, and what it answers there."""

from __future__ import annotations

import re
from urllib.error import HTTPError
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families
from tests.faults.sidecar import Sidecar
from tests.patience import PATIENCE, eventually

WATCHED = ("--health-listen", "127.0.0.1:0")
"""The arguments with which it has such a port."""


class Watched(Sidecar):
    """A server that is started with WATCHED."""

    def page(self, path: str) -> tuple[int, str]:
        """A page's status and text."""
        try:
            with urlopen(f"http://{self.probes}{path}", timeout=PATIENCE) as reply:
                return reply.status, reply.read().decode()
        except HTTPError as error:
            with error:
                return error.code, error.read().decode()

    @property
    def probes(self) -> str:
        """Where it says that it answers probes, since its last start."""
        found = eventually(lambda: re.findall(r"answering probes.*endpoint=(\S+)", self._said()))
        return str(found[-1])

    def launch(self) -> None:
        self._said_before = len(self.log.read_text("utf-8")) if self.log.exists() else 0
        super().launch()

    def _said(self) -> str:
        return self.log.read_text("utf-8")[self._said_before :]

    def metric(self, name: str, **labels: str) -> float:
        """The value of a sample, 0 where there is none."""
        status, page = self.page("/metrics")
        assert status == 200, page
        families = text_string_to_metric_families(page)
        samples = (sample for family in families for sample in family.samples)
        found = [each.value for each in samples if each.name == name and labels.items() <= each.labels.items()]
        assert len(found) < 2
        return float(sum(found))
