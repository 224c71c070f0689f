"""The model that makes the vectors of each tenant's messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

from msgspec import Struct, field

BUILTIN_MODEL = "all-MiniLM-L6-v2"
"""The model in the process. The model name of its vectors is this, a slash and their precision."""

T = TypeVar("T")


class PerTenant(Struct, Generic[T], frozen=True):
    """A value for every tenant: its own, or the default."""

    default: T
    tenants: Mapping[str, T] = field(default_factory=dict)

    def of(self, tenant_id: str) -> T:
        return self.tenants.get(tenant_id, self.default)

    def all(self) -> list[T]:
        """The default, then the tenants' own values."""
        return [self.default, *self.tenants.values()]


class ServedModel(Struct, frozen=True):
    """A model that embeds messages: the name of its vectors, and whether it makes word pieces, too.

    Vectors are compared only with those of the same name. An empty name: no vectors are made.
    """

    name: str = ""
    late: bool = False


class Tenants(Struct, frozen=True):
    """A set of tenants: the named ones, or all others."""

    names: frozenset[str]
    others: bool = False

    def __contains__(self, tenant_id: str) -> bool:
        return (tenant_id in self.names) != self.others


EVERYBODY = Tenants(frozenset(), others=True)


class ServedModels(PerTenant[ServedModel], frozen=True):
    """The model of every tenant."""

    default: ServedModel = ServedModel()

    def groups(self) -> dict[ServedModel, Tenants]:
        """Each model with the tenants whose messages it embeds."""
        apart = frozenset(tenant for tenant, model in self.tenants.items() if model != self.default)
        groups = {self.default: Tenants(apart, others=True)}
        for model in {self.tenants[tenant] for tenant in apart}:
            groups[model] = Tenants(frozenset(tenant for tenant in apart if self.tenants[tenant] == model))
        return groups
