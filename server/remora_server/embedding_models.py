"""The embedders that the settings ask for: the built-in model and endpoints, and which tenant has which."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from msgspec import Struct

from remora_server.domain.models import PerTenant, ServedModel, ServedModels
from remora_server.domain.search import Embedder
from remora_server.engine.encoder import LocalEmbedder, load_embedder
from remora_server.settings.embedding import BUILTIN, EndpointSettings, ModelChoice
from remora_server.settings.settings import Settings

if TYPE_CHECKING:
    from remora_server.engine.endpoint_embedder import EndpointEmbedder


class ModelsError(Exception):
    """The models of the settings cannot be used; the message says why."""


class Models(Struct, frozen=True):
    """The models that are in use, before their endpoints are asked anything."""

    choice: ModelChoice
    builtin: LocalEmbedder | None
    late: bool

    @classmethod
    def of(cls, settings: Settings, kernels: str | None) -> Models:
        """Load what is needed. Raises ModelFilesError, ModelsError."""
        choice, builtin = settings.models, None
        if BUILTIN in choice.names():
            builtin = load_embedder(settings.model_dir, settings.precision, kernels, late=settings.late)
        for name, endpoint in choice.endpoints_in_use().items():
            _require_usable(name, endpoint, builtin)
        return cls(choice, builtin, settings.late)

    @classmethod
    def begin(cls, settings: Settings) -> Callable[[], Models]:
        """Load what is needed in a thread, mostly without the interpreter's lock. What is returned waits for it, and
        raises what `of` does, or ValueError for kernels that this processor lacks.
        """
        loading = ThreadPoolExecutor(1, thread_name_prefix="models")
        models = loading.submit(cls.of, settings, None if settings.kernels == "auto" else settings.kernels)
        loading.shutdown(wait=False)
        return models.result

    def served(self) -> ServedModels:
        """What the store is to know of them."""
        tenants = {tenant: self._served(name) for tenant, name in self.choice.tenants.items()}
        return ServedModels(self._served(self.choice.default), tenants)

    def _served(self, name: str) -> ServedModel:
        if name in self.choice.endpoints:
            return ServedModel(self.choice.endpoints[name].vectors)
        if name == BUILTIN and self.builtin is not None:
            return ServedModel(self.builtin.model, self.late)
        return ServedModel()

    def embedders(self, dimension_of: Callable[[ServedModel], int], waiters: int) -> Embedders:
        """The embedders; `dimension_of` is that of a model's stored vectors, 0 if there are none.

        At most `waiters` calls wait for an endpoint at a time.
        """
        endpoints = {
            name: open_endpoint(endpoint, dimension_of(self._served(name)), waiters)
            for name, endpoint in self.choice.endpoints_in_use().items()
        }
        own: dict[str, Embedder] = {} if self.builtin is None else {BUILTIN: self.builtin}
        found: dict[str, Embedder] = {**own, **endpoints}
        tenants = {tenant: found.get(name) for tenant, name in self.choice.tenants.items()}
        return Embedders(PerTenant(found.get(self.choice.default), tenants), tuple(endpoints.values()))


class Embedders(Struct, frozen=True):
    """The embedder of every tenant, and those that are endpoints."""

    of_tenants: PerTenant[Embedder | None]
    endpoints: tuple[EndpointEmbedder, ...] = ()

    def by_model(self) -> dict[str, Embedder]:
        """Each embedder that is in use, by the name of its vectors."""
        return {embedder.model: embedder for embedder in self.of_tenants.all() if embedder is not None}

    def dimension_of(self, model: str) -> int:
        """The dimension of a model's vectors, by their name; 0 if it is none of these, or not known yet."""
        return next((each.status().dimension for each in self.of_tenants.all() if each and each.model == model), 0)

    def close(self) -> None:
        """Ask the endpoints nothing any more."""
        for endpoint in self.endpoints:
            endpoint.close()


NO_EMBEDDERS = Embedders(PerTenant(None))


def open_endpoint(settings: EndpointSettings, dimension: int, waiters: int) -> EndpointEmbedder:
    """The embedder of an endpoint, which is not asked anything yet."""
    # Imported where one is used: a client of HTTP takes time and memory, which a server without endpoints saves.
    from remora_server.engine.endpoint import Endpoint, EndpointOptions  # noqa: PLC0415
    from remora_server.engine.endpoint_embedder import EmbedderOptions, EndpointEmbedder  # noqa: PLC0415
    from remora_server.engine.http_endpoint import HttpOptions  # noqa: PLC0415

    endpoint = Endpoint(
        EndpointOptions(
            HttpOptions(
                url=f"{settings.base_url}/embeddings",
                headers=settings.headers,
                key_header=settings.api_key_header,
                key=settings.api_key,
                key_file=settings.api_key_file,
            ),
            model=settings.model,
            dimensions=settings.dimensions,
        )
    )
    options = EmbedderOptions(
        model=settings.vectors,
        dimension=settings.dimensions or dimension,
        encoding=settings.encoding,
        max_tokens=settings.max_tokens,
        batch_texts=settings.batch_texts,
        batch_tokens=settings.batch_tokens,
        timeout=settings.timeout,
        query_timeout=settings.query_timeout,
        waiters=waiters,
    )
    return EndpointEmbedder(endpoint, options)


def _require_usable(name: str, endpoint: EndpointSettings, builtin: LocalEmbedder | None) -> None:
    if endpoint.api_key_variable is not None and not endpoint.api_key:
        raise ModelsError(f"{endpoint.api_key_variable}, the variable with the key of the model {name}, is not set")
    if builtin is not None and endpoint.vectors == builtin.model:
        raise ModelsError(f"the vectors of the model {name} are called as those of the built-in one: set `vectors`")
