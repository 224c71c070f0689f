"""Rules and values of memory. Knows nothing of gRPC, protobuf, SQL or the engine."""
