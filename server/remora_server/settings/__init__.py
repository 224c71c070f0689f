"""The settings: what can be set, where values come from, and which are refused. Builds none of the parts."""
