"""Compiled loops (``.pyx``, in Cython), which formats share, and what they are made of.

``docs/kernels.md`` says what each module has, and how a plugin compiles loops of its own.
"""
