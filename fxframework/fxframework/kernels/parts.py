"""The kinds of parts of a template (``templates.py``).

``TEXT``: numbers of texts; ``COPIED``, ``QUOTED``: those of texts of a column, verbatim or quoted
where necessary. ``SIGNED``, ``NATURAL``, ``HEX``: integers; ``HEX16``: in
16 digits. ``MICROS``, ``SECONDS``: nanoseconds as
exact microseconds and seconds; ``LENGTH``: in the largest unit that fits. ``MEMBERS``, followed by
the part ``MEMBERS_END``: a range of members. ``MARK`` and ``NOTHING`` write nothing; ``marks`` has
the offset of MARK in each row.
"""

from __future__ import annotations

(
    TEXT, COPIED, QUOTED, SIGNED, NATURAL, HEX, HEX16, MICROS, SECONDS, LENGTH, MEMBERS,
    MEMBERS_END, MARK, NOTHING,
) = range(14)  # fmt: skip
