"""Writing: calls and records to bytes; parts, merged captures, salvage.

- Calls: ``writer``, with ``arguments``; to packets and rings by ``sinks``; from ``logging``
  by ``handler``.
- Records, or their JSON: ``rewriter``; ``convert`` makes records of one generation of another's,
  ``redaction`` leaves out what they must not say.
- Parts, several captures, what is sound of a damaged one: ``copying``.
"""
