"""Datasets: many captures as one partitioned Parquet dataset, made in parallel and asked in SQL."""
