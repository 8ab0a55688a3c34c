"""Writing: calls, records and tables to bytes; parts, merged captures, salvage.

`writer` writes calls, `bulk` tables, `extract` a part, `merge` several captures, `salvage`
what is sound.
"""
