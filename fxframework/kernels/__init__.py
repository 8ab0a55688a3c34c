"""What kernels are made of, in compiled code and in plain Python alike.

A kernel is a module with a ``.pxd`` of the same name beside it. Where the wheel could be compiled,
the compiled module is imported; elsewhere the ``.py`` runs as it is. docs/kernels.md says how to
write one.
"""
