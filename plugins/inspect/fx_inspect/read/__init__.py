"""Reading: bytes to records, and to the columns of tables.

- Blocks are found, and their fields read, in ``blocks`` (``Blocks.runs``), for tables and objects.
- Chains of extents are followed in ``chains`` (``follow``), for all texts at once.
- Strings become codes in ``texts`` (``Texts.enter``), paths of nodes in ``tree`` (``paths_of``).
- Values are looked up in ``values`` (``Values``) and put in order in ``tree`` (``tree_order``).
- ``vmo`` (``Vmo``) runs all this; columns of tables are made of it in ``rows`` (``TreeRows``);
  their schemas are in ``tables``.
- Findings, with their severity, are in ``fx_inspect.rules``.
"""
