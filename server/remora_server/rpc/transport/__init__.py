"""How calls are carried: natively or by grpcio. Knows methods by their paths, and nothing of what they do."""
