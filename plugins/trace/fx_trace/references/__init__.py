"""References: what other readers of traces do with a file, each as a table and a model."""
