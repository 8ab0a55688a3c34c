"""Chrome trace JSON as an input format of fxframework."""
