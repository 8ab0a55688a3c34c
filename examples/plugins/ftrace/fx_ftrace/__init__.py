"""Linux ftrace text."""
