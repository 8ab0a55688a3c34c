"""Reading: bytes to records, and to the columns of tables."""
