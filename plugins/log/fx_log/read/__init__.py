"""Reading: bytes to records, and to the columns of tables.

- How long records are, and where reading goes on behind damage, is declared in ``fx_log.format``:
  Structured, RingFrame and StreamPacket. The framing of wire goes by it.
- Where records are, and what lies before, between and behind them, are columns (``frames``,
  ``Frames``), with the rule by which a stretch is not a record (``StructuredFile``, ``RingFile``,
  ``PacketFile``): tables, objects (``Records``, ``explain``), parts, salvage and merging all begin
  there.
- Fields become columns in ``blocks``, many records at a time: ``LogBlocks.read``,
  ``PacketBlocks.read``; strings become codes in ``BlockArguments.enter``.
- The same blocks become lines of record JSON in ``lines``.
- What arguments mean, and which rows they make, is in ``fx_log.meaning``.
- Columns of tables are made of rows in ``capture``; their schemas are in ``fx_log.tables``.
- Options say what arguments mean (``blocks``, ``BlockReader``), which records are read
  (``frames``, ``FramedFile``), and which clock it is (``capture``);
  printfs are found by ``fx_log.meaning`` and rendered by ``capture``, ``messages``.
- Findings, with their severity, are in ``fx_log.rules``; ``fx_log.severity`` is about the
  severities of logs.
"""
