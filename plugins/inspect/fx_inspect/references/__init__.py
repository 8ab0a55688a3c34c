"""References: what other readers of Inspect VMOs do with a file, as tables by our findings."""
