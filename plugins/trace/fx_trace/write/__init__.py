"""Writing: calls, records and tables to bytes; parts, merged captures, salvage.

- Calls: ``writer``, with ``arguments`` and ``slots``; to files by ``archive``, to trace buffers by
  ``buffer``.
- Records, or their JSON: ``rewriter``.
- Tables: ``bulk``; ``table_items`` says what rows become, ``pack`` makes bytes of columns.
- Parts: ``extract``; ``selected`` chooses records, ``needs`` adds what they refer to.
- Several captures: ``merge``. What is sound of a damaged one: ``salvage``.
"""
