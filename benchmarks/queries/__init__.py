"""Queries of every kind that people type, each with one known answer in stores of 1,000 and 20,000 messages.

All texts are the project's own: `material` is written by hand, `stores` makes messages and queries of it with a seed.
"""
