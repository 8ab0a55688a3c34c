"""Linux ftrace text as an input format of fxframework."""
