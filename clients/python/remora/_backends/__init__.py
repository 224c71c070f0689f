"""The parts of grpc that differ between the async client and the sync one derived from it."""
