"""Verbs: what is done with captures of declared formats, as bytes of many records at once.

``copies`` has the records that a part or a salvage copies, ``merge`` puts those of several captures
in order.
"""
