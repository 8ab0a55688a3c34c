"""Chrome JSON (the Trace Event Format) as an input: events as records, and rows of the tables."""
