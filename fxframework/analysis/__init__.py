"""Analysis of calls: what the slices of any capture say of functions, stacks and time."""
