"""Analysis of calls: functions, stacks and times computed from the slices of any capture."""
