"""The base class of kernels, which run without the interpreter's lock."""

from __future__ import annotations

try:
    import cython
except ImportError:  # Cython is only needed to compile
    from fxframework.io import plain as cython

__all__ = ["Kernel"]


class Kernel:
    """A long-running loop, which a subclass implements in ``step``."""

    def step(self) -> int:
        """Run the loop, without the interpreter's lock; the subclass defines the result."""
        return 0

    def run(self) -> int:
        """Call ``step``, with the interpreter's lock released if compiled."""
        if cython.compiled and hasattr(type(self), "step"):
            # A plain subclass, whose method the compiled base class cannot call directly.
            return int(type(self).step(self))
        with cython.nogil:
            return self.step()
