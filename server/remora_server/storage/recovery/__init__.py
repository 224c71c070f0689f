"""Backups, and the diagnosis and repair of damaged stores. Knows files, tables and the journal, but no noun."""
