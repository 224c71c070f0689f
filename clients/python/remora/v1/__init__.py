"""Code generated from proto/remora/v1."""
