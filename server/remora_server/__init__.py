"""Remora's server: the memory that rides beside an agent."""
