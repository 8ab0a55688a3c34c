"""Reading: bytes to records, and to the columns of tables.

- Blocks are declared in ``fx_inspect.format``. Their fields are read in ``blocks``
  (``Blocks.runs``), for tables and objects, where it is decided, too, what is damage and where
  reading goes on behind it.
- Chains of extents are followed in ``chains`` (``follow``), for all texts at once.
- Strings become codes in ``texts`` (``Texts.enter``), paths of nodes in ``tree`` (``paths_of``).
- Blocks become rows of nodes, properties and links in ``values`` (``Values.add``), which drops
  those that are wrong (``Values.settle``); ``tree`` puts them in order (``tree_order``).
- ``vmo`` (``Vmo``) runs all this; columns of tables are made of its rows in ``batches``
  (``TreeRows``); their schemas are in ``tables``.
- Findings, with their severity, are in ``fx_inspect.rules``.
"""
