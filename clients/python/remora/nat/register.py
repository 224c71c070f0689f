"""What the toolkit's entry point loads: the configuration of a memory `_type: remora`, and how it is built."""

from collections.abc import AsyncIterator

from nat.builder.builder import Builder
from nat.cli.register_workflow import register_memory
from nat.data_models.memory import MemoryBaseConfig
from pydantic import ConfigDict, Field, SecretStr

from remora._async.client import AsyncRemora
from remora.memory_items import LEAST_TTL, MOST_TTL
from remora.nat.editor import RemoraEditor


class RemoraMemoryConfig(MemoryBaseConfig, name="remora"):  # type: ignore[call-arg] # known to the untyped base
    """A memory in a Remora sidecar."""

    model_config = ConfigDict(extra="forbid")

    endpoint: str | None = Field(
        default=None,
        description="Where the sidecar listens: `unix:/path` or `host:port`. Default: $REMORA_ENDPOINT, else its usual "
        "place.",
    )
    data: str | None = Field(
        default=None,
        description="Instead of an endpoint: the data directory of a sidecar that is started if there is none, or "
        "`:memory:` for one that keeps nothing. Needs the package remora-server.",
    )
    token: SecretStr | None = Field(
        default=None, description="The token, if the sidecar wants one. Default: $REMORA_TOKEN, unless there is `data`."
    )
    tenant: str | None = Field(
        default=None,
        description="The tenant, if the sidecar wants no token. Default: $REMORA_TENANT, unless there is `data`.",
    )
    timeout: float = Field(
        default=2.0,
        gt=0,
        allow_inf_nan=False,
        description="The deadline of each operation in seconds, with all of its retries.",
    )
    fail_open: bool = Field(
        default=False,
        description="Whether the agent answers without its memory while the sidecar fails: a search then finds nothing "
        "and what is added is lost, with a warning in the log. Deletions fail all the same.",
    )
    write_behind: bool = Field(
        default=False,
        description="Whether items are added in the background. The user's next search waits for them, so that it "
        "finds them. A failure is only logged, and items that still wait when the process dies are lost.",
    )
    ttl: float | None = Field(
        default=None,
        ge=LEAST_TTL,
        le=MOST_TTL,
        description="How many seconds items live, from 0.001 to 100 years. Default: for ever.",
    )
    threshold: float | None = Field(
        default=None, ge=0, le=1, description="Only items with this score or a higher one are found. Default: any."
    )
    include_context: bool = Field(
        default=True,
        description="Whether items keep whose request they come from, under `user_context` of their metadata: name, "
        "e-mail, conversation and run, where the toolkit knows them.",
    )
    context_headers: list[str] = Field(
        default_factory=list, description="Headers of the request that `user_context` keeps, too."
    )


@register_memory(config_type=RemoraMemoryConfig)
async def remora_memory(config: RemoraMemoryConfig, _builder: Builder) -> AsyncIterator[RemoraEditor]:
    """The editor of a workflow, which is closed with it."""
    if config.data is not None and config.endpoint is not None:
        raise ValueError("a remora memory has an endpoint or data, not both")
    async with await _client(config) as client:
        editor = RemoraEditor(
            client,
            fail_open=config.fail_open,
            write_behind=config.write_behind,
            ttl=config.ttl,
            threshold=config.threshold,
            include_context=config.include_context,
            context_headers=config.context_headers,
        )
        try:
            yield editor
        finally:
            await editor.flush()


async def _client(config: RemoraMemoryConfig) -> AsyncRemora:
    token = None if config.token is None else config.token.get_secret_value()
    if config.data is not None:
        return await AsyncRemora.start(config.data, token=token, tenant=config.tenant, timeout=config.timeout)
    return AsyncRemora(config.endpoint, token=token, tenant=config.tenant, timeout=config.timeout)
