"""Writing: records to the bytes that they came from."""
