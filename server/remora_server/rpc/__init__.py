"""The wire: requests in, replies out. Knows gRPC and remora.v1, nothing of SQL, the engine or the settings."""
