"""Backups, and what is done for a damaged store. Knows files, tables and the journal, but no noun."""
