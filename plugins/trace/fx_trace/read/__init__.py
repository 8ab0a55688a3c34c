"""Reading: bytes to records, and to the columns of tables.

- ``frames`` finds where records begin and end, by wire's framing; ``buffer`` and ``image`` say
  where the stretches of a trace buffer lie.
- ``decoder`` reads them one at a time, as objects; ``cursor`` has what providers said so far.
- ``blocks`` reads records as columns, thousands at a time, as ``fx_trace.records`` declares them.
- ``rows`` makes raw rows of them, as ``fx_trace.meaning`` says; ``threads`` numbers who is
  mentioned, and ``chunks`` holds rows.
- What needs the whole file, ``first_pass`` finds; ``match`` nests slices.
- Columns of tables are made of rows in ``batches``; their schemas are in ``tables``.
- Lines of record JSON are written in ``lines``, of the columns that ``blocks`` reads.
- Findings, with their severity, are in ``fx_trace.rules``.
"""
