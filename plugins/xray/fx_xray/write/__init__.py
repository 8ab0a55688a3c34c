"""Writing: calls, records and tables to bytes; parts, merged captures, salvage.

- Calls: ``flight_recorder`` (``FdrWriter``) and ``basic_recorder`` (``BasicWriter``); what both
  share is in ``recorder``.
- Records, or their JSON: ``rewriter``, with ``encoder``.
- Tables: ``bulk``.
- Parts: ``extract``; ``packer`` writes the events, ``buffers`` says which buffer and which clock
  each has.
- Several captures: ``merge``. What is sound of one: ``salvage``.
"""
