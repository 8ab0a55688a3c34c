"""Input and output of bytes: sources, sinks, limits, bit fields. Independent of formats."""
