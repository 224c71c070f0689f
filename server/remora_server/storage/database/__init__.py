"""The data directory and DuckDB in it: files, tables, columns, what a failure says. Knows no journal and no rule."""
