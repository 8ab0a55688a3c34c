"""An emulated Fuchsia/x86 target: memory, VMOs, CPUs, clocks, threads, buffers, sockets, faults."""
