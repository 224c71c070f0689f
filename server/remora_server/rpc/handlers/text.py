"""The RPCs of counting tokens and of embedding."""

from __future__ import annotations

from msgspec import Struct

from remora.v1 import text_service_pb2 as pb
from remora.v1.message_pb2 import Embedding
from remora_server.domain.costs import REPLY_PRIMING, Counting
from remora_server.domain.errors import InvalidField, ModelUnavailable, ModelUnreachable
from remora_server.domain.models import PerTenant
from remora_server.domain.search import Embedder, EmbeddingFailed
from remora_server.domain.tokens import TokenCounter
from remora_server.domain.vectors import FLOAT_BYTES
from remora_server.rpc.calls import Call
from remora_server.rpc.handlers import decode


class TextHandlers(Struct, frozen=True):
    """Answers the RPCs of counting tokens and of embedding. A tenant without an embedder gets no embeddings."""

    tokens: TokenCounter
    embedders: PerTenant[Embedder | None]

    def count_tokens(self, _call: Call, request: pb.CountTokensRequest) -> pb.CountTokensResponse:
        encoding = decode.encoding(request.encoding, self.tokens)
        counting = Counting(self.tokens, encoding, request.encoding.model)
        messages = list(map(decode.chat_message, request.messages))
        counts = counting.messages(messages) if messages else counting.texts(list(request.texts))
        uncounted = sum(bool(counting.uncounted(message)) for message in messages)
        return pb.CountTokensResponse(
            counts=counts,
            total=sum(counts) + (REPLY_PRIMING if messages else 0),
            encoding=encoding.name,
            exact=encoding.exact and not uncounted,
            margin=encoding.margin,
            uncounted_parts=uncounted,
        )

    def embed(self, call: Call, request: pb.EmbedRequest) -> pb.EmbedResponse:
        embedder = self.embedders.of(call.tenant_id)
        if embedder is None:
            raise ModelUnavailable
        try:
            vectors = [made.values for made in embedder.embed_now(list(request.texts), call.deadline)]
        except EmbeddingFailed as error:
            raise ModelUnreachable(str(error), error.wait) from error
        if b"" in vectors:
            raise InvalidField(f"texts[{vectors.index(b'')}]", "is refused by the model")
        embeddings = [Embedding(model=embedder.model, values=values) for values in vectors]
        return pb.EmbedResponse(embeddings=embeddings, dimension=len(vectors[0]) // FLOAT_BYTES)
