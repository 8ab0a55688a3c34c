"""The exporter `flamegraph` and the style and script of its pictures."""
