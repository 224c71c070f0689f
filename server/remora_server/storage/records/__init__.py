"""Records of the kinds, from memory and from DuckDB. Knows of each kind what it declares, and nothing of messages."""
