"""Which messages wait for a vector, and the vectors that come. Knows no model but by its name, and no search."""
