"""A writer of one's own, tested: it must leave something readable wherever it crashes.

    pytest examples/test_my_writer.py

``MyLog`` keeps texts in any memory: a count in the first word, then a word of length and the text
for each. The fixtures come with fxframework: ``crashtest`` crashes the writer after every single
store, ``vmo`` makes memories of an emulated target, ``trace_buffer`` its trace buffers.
"""

import fxframework as fxf
from fx_trace.write.buffer import TraceBuffer
from fx_trace.write.writer import TraceWriter


class MyLog:
    """Texts in a memory."""

    def __init__(self, memory):
        self.memory = memory
        self.end = 8

    def append(self, text: bytes):
        """Store the text first, and count it last: with one store it is there."""
        padded = text + bytes(-len(text) % 8)
        self.memory.store_u64(self.end, len(text))
        self.memory.write(self.end + 8, padded)
        self.end += 8 + len(padded)
        self.memory.store_u64(0, self.memory.load_u64(0) + 1)

    @staticmethod
    def read(image: bytes) -> list[bytes]:
        """The texts of an image; AssertionError for an invalid image."""
        texts = []
        offset = 8
        text_count = int.from_bytes(image[:8], "little")
        for _ in range(text_count):
            length = int.from_bytes(image[offset : offset + 8], "little")
            text = image[offset + 8 :][:length]
            assert all(text), f"a text with holes at byte {offset}"
            texts.append(text)
            padding = -length % 8
            offset += 8 + length + padding
        return texts


def test_my_log_can_always_be_read(crashtest):
    def write(memory):
        log = MyLog(memory)
        for text in (b"hello", b"a longer text than before", b"bye"):
            log.append(text)

    report = crashtest(write, MyLog.read, size=256)
    assert report.images == report.stores + 1


def test_my_log_in_a_vmo(vmo):
    memory = vmo(4096)
    MyLog(memory).append(b"hello")
    assert MyLog.read(memory.read(0, memory.size)) == [b"hello"]


def test_my_traces_fit_a_small_buffer(trace_buffer):
    buffer = trace_buffer(4096, mode="circular")
    writer = TraceWriter(buffer, ticks_per_second=1000)
    for tick in range(500):
        writer.instant("app", f"event {tick % 10}", thread=(1, 2), timestamp=tick)
    buffer.stop()
    with fxf.open(buffer.memory.read(0, 4096), format="trace-buffer") as capture:
        assert capture.table("instants")["ts"][-1] == 499_000_000


def test_my_traces_survive_a_crash(crashtest):
    def write(buffer):
        writer = TraceWriter(buffer, ticks_per_second=1000)
        for tick in range(5):
            writer.instant("app", f"event {tick}", {"at": tick}, thread=(1, 2), timestamp=tick)
            buffer.memory.note(tick)  # committed: from here on it must be there

    def check(image, notes):
        with fxf.open(image, format="trace-buffer") as capture:
            assert len(capture.table("instants")) >= len(notes)

    crashtest(write, check, size=4096, setup=lambda memory: TraceBuffer(memory, "circular"))
