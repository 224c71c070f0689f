"""Remora's client for Python."""
