"""Reading: lines to records and tables."""
