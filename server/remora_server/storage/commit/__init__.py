"""The way of a write: locks, its record in the journal, and the applier that brings it into DuckDB. Knows no noun."""
