"""The base class of kernels, which run without the interpreter's lock."""

from __future__ import annotations

from fxframework.kernels.annotations import Fallible, i64, virtual

try:
    import cython
except ImportError:  # Cython is only needed to compile
    from fxframework.io import plain as cython

__all__ = ["Kernel"]


class Kernel:
    """A long-running loop, which a subclass implements in ``step``."""

    @virtual
    def step(self) -> Fallible[i64]:
        """Run the loop, without the interpreter's lock; the subclass defines the result."""
        return 0

    def run(self) -> int:
        """Call ``step``, with the interpreter's lock released if compiled."""
        if cython.compiled and hasattr(type(self), "step"):
            # A plain subclass, whose method the compiled base class cannot call directly.
            return int(type(self).step(self))
        with cython.nogil:
            result = self.step()
        return result  # noqa: RET504 (with the lock)
