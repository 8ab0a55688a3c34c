"""The page of odd captures."""
