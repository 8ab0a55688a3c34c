"""References: what other readers of logs do with a file, each as a table and a model."""
