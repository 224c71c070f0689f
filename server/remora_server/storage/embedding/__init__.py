"""Messages that wait for a vector, and the vectors that are stored. Knows models by name only, and no search."""
