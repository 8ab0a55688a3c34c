"""Writing: calls and records to bytes; parts, merged captures, salvage.

`writer` writes calls, `extract` a part (a cut), `merge` several captures, `salvage` what is sound.
"""
