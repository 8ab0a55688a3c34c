"""Reading: bytes to records, and to the columns of tables.

- Sizes of records are checked in ``scan`` (``Scan.record``), for tables and objects.
- Strings become codes in ``texts`` (``Interning``), paths of nodes in ``order`` (``Paths``).
- Rows are added in ``values`` (``Values.property``, ``read_node``, ``read_link``), which
  ``first_pass`` runs.
- Columns of tables are made of rows in ``batches``; their schemas are in ``tables``.
- Findings, with their severity, are in ``fx_inspect.rules``.
"""
