"""What requests may hold, compiled of the options that the contract states. Knows no call and no handler."""
