"""The base of kernels: what runs without the interpreter's lock."""

from __future__ import annotations

try:
    import cython
except ImportError:  # only who compiles needs Cython
    from fxframework.kernels import plain as cython

__all__ = ["Kernel"]


class Kernel:
    """Long-running work: a subclass says in ``step`` what is done."""

    def step(self) -> int:
        """Do the work, without the interpreter's lock; what it gives is the subclass's to say."""
        return 0

    def run(self) -> int:
        """Call ``step``, with the interpreter's lock released where this is compiled."""
        if cython.compiled and hasattr(type(self), "step"):
            # A plain class below the compiled one, which cannot see its method by itself.
            return int(type(self).step(self))
        with cython.nogil:
            return self.step()
