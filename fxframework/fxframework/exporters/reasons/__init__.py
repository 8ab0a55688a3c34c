"""The page of the reasons of slow calls."""
