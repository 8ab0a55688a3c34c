"""References: what other readers of XRay traces do with a file, each as a table and a model."""
