"""The data directory and DuckDB in it: files, tables, columns, kinds of failures. Knows no journal and no rules."""
