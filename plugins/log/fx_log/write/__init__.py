"""Writing: calls and records to bytes; parts, merged captures, salvage.

`writer` writes calls, `rewriter` records, `copying` a part, what is sound, or several captures.
"""
