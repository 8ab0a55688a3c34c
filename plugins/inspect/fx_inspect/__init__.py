"""fx_inspect: Fuchsia's Inspect VMOs of versions 0, 1 and 2, read and written."""
