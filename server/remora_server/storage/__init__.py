"""The local store: a journal in front of DuckDB. The only code that knows SQL."""
