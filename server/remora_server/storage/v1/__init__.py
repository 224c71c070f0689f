"""Code generated from server/proto/remora_server/storage/v1."""
