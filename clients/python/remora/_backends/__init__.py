"""The two ways of grpc: what differs between the async source of the client and the sync face derived from it."""
