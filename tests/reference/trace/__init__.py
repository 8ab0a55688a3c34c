"""The decoder of traces that was written by hand, frozen: the declared one is held against it."""
