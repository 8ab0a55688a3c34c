"""Bytes in and out: sources, sinks, bit fields and compiled kernels. Knows no format."""
