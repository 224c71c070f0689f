"""What is stored, by declaration: kinds, keys, and rows in wire form. Knows no database and no journal."""
