"""The kinds of parts of a template (``templates.py``).

``TEXT``: numbers of texts; ``COPIED``, ``QUOTED``: those of texts of a column, verbatim or quoted
where necessary. ``SIGNED``, ``NATURAL``, ``HEX``: integers; ``HEX16``: in 16 digits; ``FRACTION``:
billionths, as the decimals behind a number; ``ZEROS`` and so many digits: NATURAL, with zeros in
front. ``MICROS``, ``SECONDS``: nanoseconds as exact microseconds and seconds; ``LENGTH``: in the
largest unit that fits (``moments.py`` makes several parts of these three). ``MEMBERS``, followed by
the part ``MEMBERS_END``: a range of members. ``MARK`` and ``NOTHING`` write nothing; ``marks`` has
the offset of MARK in each row.

``STRETCH``, followed by the part ``STRETCH_END``: UTF-8 of ``source``, from one place up to
another, as a JSON string; ``STRETCH_HEX``: bytes likewise, in hex. ``SKIP``: how many
of the parts that follow it are left out.
"""

from __future__ import annotations

(
    TEXT, COPIED, QUOTED, SIGNED, NATURAL, HEX, HEX16, FRACTION, MICROS, SECONDS, LENGTH,
    MEMBERS, MEMBERS_END, MARK, NOTHING, STRETCH, STRETCH_HEX, STRETCH_END, SKIP, ZEROS,
) = range(20)  # fmt: skip
