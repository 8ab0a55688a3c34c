"""Building blocks of kernels, which run compiled or as plain Python.

A kernel is a module that imports names of ``annotations``. If it was compiled, the compiled module
is imported, otherwise the ``.py``. docs/kernels.md describes how to write one.
"""
