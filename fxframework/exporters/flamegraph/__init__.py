"""The flame graph: calls as one picture that zooms."""
