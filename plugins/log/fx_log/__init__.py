"""fx_log: Fuchsia's binary logs, structured and legacy, read into records and tables, and written."""
