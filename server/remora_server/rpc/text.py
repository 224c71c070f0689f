"""The RPCs of counting tokens and of embedding."""

from __future__ import annotations

from dataclasses import dataclass

from remora.v1 import text_service_pb2 as pb
from remora.v1.message_pb2 import Embedding
from remora_server.domain.costs import REPLY_PRIMING, message_costs
from remora_server.domain.errors import ModelUnavailable
from remora_server.domain.search import Embedder
from remora_server.domain.tokens import TokenCounter
from remora_server.rpc import decode
from remora_server.rpc.calls import Call


@dataclass(frozen=True, slots=True)
class TextHandlers:
    """Answers the RPCs of counting tokens and of embedding. Without an embedder there are no embeddings."""

    tokens: TokenCounter
    embedder: Embedder | None

    def count_tokens(self, _call: Call, request: pb.CountTokensRequest) -> pb.CountTokensResponse:
        encoding = decode.encoding(request.encoding, self.tokens)
        if request.messages:
            counts = message_costs(self.tokens, encoding, list(map(decode.chat_message, request.messages)))
        else:
            counts = self.tokens.count(encoding, list(request.texts))
        return pb.CountTokensResponse(
            counts=counts,
            total=sum(counts) + (REPLY_PRIMING if request.messages else 0),
            encoding=encoding.name,
            exact=encoding.exact,
            margin=encoding.margin,
            uncounted_parts=sum(bool(message.parts) for message in request.messages),
        )

    def embed(self, _call: Call, request: pb.EmbedRequest) -> pb.EmbedResponse:
        if self.embedder is None:
            raise ModelUnavailable
        model, vectors = self.embedder.model, self.embedder.embed(list(request.texts))
        embeddings = [Embedding(model=model, values=vector.values) for vector in vectors]
        return pb.EmbedResponse(embeddings=embeddings, dimension=self.embedder.dimension)
