"""Pulse: a small format with everything, which keeps all contracts. ``faults.py`` breaks it."""
