"""A log of numbers in C, crashed after every store: it counts before it stores."""

import struct


def check(image):
    count, *values = struct.unpack_from("<8Q", image)
    assert 0 not in values[:count], "a number that is counted is not there"


def test_append(emulated_target, vmo, crashtest):
    log = vmo(4096)
    program = emulated_target.load("log.so")
    crashtest(program.entry("append", log, 42), check)
