"""What flows between readers and exporters: captures, tables, strings, clocks, diagnostics."""
