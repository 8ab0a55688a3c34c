"""Writing: calls and records to bytes; parts, merged captures, salvage.

`writer` writes calls, `copying` a part or what is sound, `merge` several captures.
"""
