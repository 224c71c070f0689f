"""What requests may hold, compiled from the options that the contract states. Knows no call and no handler."""
