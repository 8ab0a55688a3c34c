"""Exporters: one module each."""
