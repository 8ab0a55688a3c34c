"""The kinds of parts of a template (``templates.py``).

``TEXT``: numbers of texts. ``SIGNED``, ``NATURAL``, ``HEX``: integers. ``MICROS``, ``SECONDS``:
nanoseconds as exact microseconds and seconds; ``LENGTH``: in the largest unit that fits.
``MEMBERS``, followed by the part ``MEMBERS_END``: a range of members. ``MARK`` writes nothing;
``marks`` has its offset in each row.
"""

from __future__ import annotations

TEXT, SIGNED, NATURAL, HEX, MICROS, SECONDS, LENGTH, MEMBERS, MEMBERS_END, MARK = range(10)
