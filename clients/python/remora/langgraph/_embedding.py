"""The vectors that an index's own embeddings make of texts and queries."""

import asyncio
from collections.abc import Iterable, Sequence

from langchain_core.embeddings import Embeddings
from langgraph.store.base.embed import EmbeddingsLambda

from remora.langgraph._operations import Batch, Index, Vectors


class Embedder:
    """Embeds what a batch needs: all texts at once, each once."""

    def __init__(self, index: Index, embeddings: Embeddings) -> None:
        self._index = index
        self._embeddings = embeddings
        self._has_one_way = isinstance(embeddings, EmbeddingsLambda)

    def of(self, batch: Batch) -> tuple[Vectors, Vectors]:
        """The vectors of the texts, and those of the queries."""
        own = self._embeddings
        texts = own.embed_documents(batch.to_embed) if batch.to_embed else []
        if self._has_one_way and batch.queries:
            queries = own.embed_documents(batch.queries)
        else:
            queries = [own.embed_query(query) for query in batch.queries]
        return self._packed(batch.to_embed, texts), self._packed(batch.queries, queries)

    async def aof(self, batch: Batch) -> tuple[Vectors, Vectors]:
        """The same, for an event loop."""
        own = self._embeddings
        texts = await own.aembed_documents(batch.to_embed) if batch.to_embed else []
        if self._has_one_way and batch.queries:
            queries = await own.aembed_documents(batch.queries)
        else:
            queries = await asyncio.gather(*(own.aembed_query(query) for query in batch.queries))
        return self._packed(batch.to_embed, texts), self._packed(batch.queries, queries)

    def _packed(self, texts: Sequence[str], vectors: Iterable[Sequence[float]]) -> Vectors:
        made = list(vectors)
        if len(made) != len(texts):
            raise ValueError(f"embed gave {len(made)} vectors for {len(texts)} texts; it must give one for each")
        return {text: self._index.packed(vector) for text, vector in zip(texts, made, strict=True)}
