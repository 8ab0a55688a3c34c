"""Writing: calls and records to bytes; salvage.

`writer` writes calls, `salvage` what is sound. There is no `extract` and no `merge`: a VMO is a
tree without times. Views of parts (`fx_inspect.read.selectors`) are for exporters.
"""
