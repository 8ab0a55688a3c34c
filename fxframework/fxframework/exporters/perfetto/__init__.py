"""The exporter `perfetto`: captures of any formats as one Perfetto trace (protobuf)."""
