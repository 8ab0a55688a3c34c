"""The kinds of parts that a template has, as ``templates.py`` writes them.

``TEXT``: numbers of texts. ``SIGNED``, ``NATURAL``, ``HEX``: numbers. ``MICROS``, ``SECONDS``:
nanoseconds as exact microseconds and seconds; ``LENGTH``: in the greatest unit that they fill.
``MEMBERS``, with the part ``MEMBERS_END`` behind it: the first member and the one behind the last.
``MARK`` writes nothing; ``marks`` has where it is in each row.
"""

from __future__ import annotations

TEXT, SIGNED, NATURAL, HEX, MICROS, SECONDS, LENGTH, MEMBERS, MEMBERS_END, MARK = range(10)
