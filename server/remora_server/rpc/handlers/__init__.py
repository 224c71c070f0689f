"""The RPCs: decode, one call of the domain, encode. Knows nothing of how calls are carried."""
