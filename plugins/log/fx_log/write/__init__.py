"""Writing: calls and records to bytes; parts, merged captures, salvage.

`writer` writes calls, `extract` a part, `merge` several captures, `salvage` what is sound.
"""
