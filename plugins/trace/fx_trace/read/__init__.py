"""Reading: bytes to records, and to the columns of tables.

- Sizes of records are checked in ``framing`` (``RecordBounds.fault``), for tables and objects. The
  scan asks it for all but the plain events and strings that fit (``Scan.read_on``,
  ``plain_string``).
- Strings become codes in ``scan`` where they are plain (``Scan.inline_string``, ``plain_string``),
  in ``fields`` elsewhere (``FieldReader.text``, ``string``), build ids in ``batches``.
- Rows of events are added in ``scan`` (``Scan.read_on``, ``event``); ``batches`` picks those of
  `slices`, `instants` and `flows`, and ``match`` nests slices. ``other_records`` adds those
  of the other records; ``rows`` has the classes of all.
- Columns of tables are made of rows in ``batches``; their schemas are in ``tables``.
- Lines of record JSON are written in ``lines``, of the columns that ``blocks`` reads.
- Findings, with their severity, are in ``fx_trace.rules``.
"""
