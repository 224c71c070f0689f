"""What the contract names: conversations, messages, steps, users, working memories. Knows nothing of vectors."""
