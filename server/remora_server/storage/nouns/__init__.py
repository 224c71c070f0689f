"""What the contract names: conversations, messages, steps, users, working memories, facts, vectors, items and others.

It must not know how messages are embedded (`storage.embedding`) or searched (`storage.recall`).
"""
