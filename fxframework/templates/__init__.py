"""Templates: the repositories that new plugins begin with, as files to be filled in."""
