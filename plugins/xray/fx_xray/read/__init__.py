"""Reading: bytes to records, and to the columns of tables.

- Sizes of records are checked in ``frames`` (``FdrPolicy.cross``, ``event``) and ``basic``, for
  tables and objects; what they say to each other in ``buffers`` (``Block``).
- Events are read of the rows of sound records, and merged by time, in ``timeline``.
- Strings become codes in ``symbols`` (``FunctionNames``), payloads of events, categories
  and names of arguments in ``batches``.
- Rows are made in ``match`` (``Matcher.rows_of``), which nests the events of a ``log`` and is run
  by ``first_pass``.
- Columns of tables are made of rows in ``batches``; their schemas are in ``tables``.
- Findings, with their severity, are in ``fx_xray.rules``.
"""
