"""fx_log: Fuchsia's binary logs, structured and legacy, read and written."""
