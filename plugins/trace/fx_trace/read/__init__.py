"""Reading: bytes to records, and to the columns of tables.

- Sizes of records are checked in ``framing`` (``RecordBounds.fault``), for tables and objects;
  ``Scan.read_on`` leaves to it the events that do not fit.
- Strings become codes in ``fields`` (``FieldReader.text``, ``string``), those of frequent records
  in ``scan`` (``Scan.inline_string``, ``plain_string``).
- Rows are added in ``scan`` (``Scan.read_on``, ``event``), of records beside events in
  ``other_records``; ``rows`` has their classes. ``match`` nests slices, and adds none.
- Columns of tables are made of rows in ``batches``; their schemas are in ``tables``.
- Findings, with their severity, are in ``fx_trace.rules``.
"""
