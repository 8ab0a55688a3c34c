"""Reading: bytes to records, and to the columns of tables.

- Sizes of records are checked in ``framing``, for whatever reads them: ``LogFramer.fault``,
  ``LogFramer.attribution`` for suffixes, ``PacketFramer.next`` and ``RingFramer.next``.
- Where records are, and what lies between them, are columns (``frames``, ``Frames``): tables,
  objects (``Records``, ``explain``), parts, salvage and merging all begin there.
- Fields become columns in ``blocks``, many records at a time: ``LogBlocks.read``,
  ``PacketBlocks.read``; strings become codes in ``BlockArguments.enter``.
- The same blocks become lines of record JSON in ``lines``.
- What arguments mean, and which rows they make, is in ``fx_log.meaning``.
- Columns of tables are made of rows in ``capture``; their schemas are in ``fx_log.tables``.
- Findings, with their severity, are in ``fx_log.rules``; ``fx_log.severity`` is about the
  severities of logs.
"""
