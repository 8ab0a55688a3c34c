"""Datasets: many captures converted in parallel to one partitioned Parquet dataset, for SQL."""
