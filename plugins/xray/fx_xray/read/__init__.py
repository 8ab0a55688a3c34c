"""Reading: bytes to records, and to the columns of tables.

- Sizes of records are checked in ``scan`` (``FdrScan.cross``, ``event``;
  ``BasicScan.next_record``), for tables and objects.
- Strings become codes in ``symbols`` (``FunctionNames``), payloads of events, categories
  and names of arguments in ``batches``.
- Rows are added in ``match`` (``Match.enter``, ``add_instant``, ``add_argument``), which
  ``first_pass`` runs over the events of a ``log``.
- Columns of tables are made of rows in ``batches``; their schemas are in ``tables``.
- Findings, with their severity, are in ``fx_xray.rules``.
"""
