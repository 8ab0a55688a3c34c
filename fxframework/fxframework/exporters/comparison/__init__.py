"""What a comparison is written as: a page, a differential flame graph, a table."""
