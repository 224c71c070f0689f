"""Searches in the engine, and what they load into it. Knows nothing of how a message is ranked."""
