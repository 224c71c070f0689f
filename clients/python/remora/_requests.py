"""The size of requests that hold a list: a longer list is sent in several."""

REQUEST_BYTES = 3 << 20
"""Bytes of elements in one request. Every server takes requests of 4 MiB."""
