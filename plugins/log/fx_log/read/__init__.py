"""Reading: bytes to records, and to the columns of tables.

- Sizes of records are checked in ``framing``, for tables and objects: ``LogFramer.fault``,
  ``LogFramer.attribution`` for suffixes, ``PacketFramer.next`` and ``RingFramer.next``.
- Strings become codes in ``scan`` (``LogScan.text``, ``name_code``), those of packets in
  ``packets`` (``PacketScan.tag``), several tags of a log in ``row_scan`` (``RowScan.joined``).
- Rows are added in ``row_scan`` (``RowScan.row``), of arguments in ``scan`` (``LogScan.key``);
  ``rows`` has their classes.
- Columns of tables are made of rows in ``batches``; their schemas are in ``tables``.
- Findings, with their severity, are in ``fx_log.rules``; ``fx_log.severity`` is about the
  severities of logs.
"""
