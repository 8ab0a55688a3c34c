"""Writing: calls, records and tables to bytes; parts, merged captures, salvage."""
