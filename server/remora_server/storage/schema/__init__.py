"""The declarations of what is stored: kinds, keys, and rows in wire form. Knows no database and no journal."""
