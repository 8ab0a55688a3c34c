"""Reading: bytes of JSON to records and tables."""
