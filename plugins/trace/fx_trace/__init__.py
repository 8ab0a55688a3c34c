"""fx_trace: the Fuchsia trace format (FXT), read into records and tables."""
