"""LLVM XRay traces: the flight data recorder's, versions 1 to 5, and basic mode's."""
