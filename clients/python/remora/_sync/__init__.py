# Derived from remora/_async/__init__.py by tools/derive_sync.py. Do not edit: edit that, and run `make gen`.
"""The sync client."""
