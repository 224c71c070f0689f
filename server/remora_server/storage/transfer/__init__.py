"""Exports and imports of a tenant's records. Knows no file: the callers send and keep them."""
