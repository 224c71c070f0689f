"""Writes: their locks, their records in the journal, and the applier that moves these into DuckDB. Knows no noun."""
