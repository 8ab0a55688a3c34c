"""Templates for the repositories of new plugins."""
