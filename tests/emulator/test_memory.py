"""Memory and its store log, against a plain bytearray, and between processes."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fx_emulator
from fx_emulator.errors import Crash, EmulatorError, MemoryAccessError
from fx_emulator.faults import CrashAfter, TornWrite
from fx_emulator.memory import Memory, StoreLog
from fxframework.model import target

from ..cases import cases

U64 = st.integers(0, 2**64 - 1)
WORDS = 16


@pytest.fixture(params=["anonymous", "file", "memfd"])
def memory(request, tmp_path):
    if request.param == "anonymous":
        made = Memory.anonymous(64, log=True)
    elif request.param == "file":
        made = Memory.file(tmp_path / "memory", 64, log=True)
    else:
        made = Memory.memfd(64, log=True)
    with made:
        yield made


MISUSES = [
    lambda m: m.load_u64(4),
    lambda m: m.load_u64(-8),
    lambda m: m.load_u64(64),
    lambda m: m.store_u64(1, 0),
    lambda m: m.store_u64(-8, 0),
    lambda m: m.store_u64(64, 0),
    lambda m: m.store_u64(0, -1),
    lambda m: m.store_u64(0, 2**64),
    lambda m: m.store_u64(0, 1.5),
    lambda m: m.read(60, 5),
    lambda m: m.read(-1, 1),
    lambda m: m.read(0, -1),
    lambda m: m.write(0, b"1234"),
    lambda m: m.write(4, bytes(8)),
    lambda m: m.write(-8, bytes(8)),
    lambda m: m.write(60, bytes(8)),
    lambda m: m.write(56, bytes(16)),
    lambda m: m.resize(12),
    lambda m: m.resize(-8),
]
"""Calls that a memory of 64 bytes refuses."""


class TestLoadsAndStores:
    def test_it_is_a_memory_of_the_protocol(self, memory):
        assert isinstance(memory, target.Memory)

    def test_begins_as_zeros(self, memory):
        assert memory.read(0, 64) == bytes(64)
        assert memory.size == 64

    def test_words_are_little_endian(self, memory):
        memory.store_u64(8, 0x0807060504030201)
        assert memory.read(7, 10) == b"\0\1\2\3\4\5\6\7\10\0"
        assert memory.load_u64(8) == 0x0807060504030201

    def test_write_counts_one_store_for_each_word(self, memory):
        memory.write(16, bytes(range(24)))
        memory.store_u64(0, 5)
        assert memory.stores == 4
        assert memory.log.offsets.tolist() == [16, 24, 32, 0]
        assert memory.log.values.tolist()[-1] == 5
        assert memory.log.values[:3].tobytes() == bytes(range(24))

    def test_takes_any_bytes_like(self, memory):
        memory.write(0, bytearray(b"12345678"))
        memory.write(8, memoryview(b"abcdefgh"))
        assert memory.read(0, 16) == b"12345678abcdefgh"

    def test_views_are_the_memory_itself(self, memory):
        view, words = memory.bytes, memory.words
        memory.store_u64(8, 0x0101)
        assert (view[8], words[1]) == (1, 0x0101)
        words[2] = 7
        assert memory.load_u64(16) == 7
        assert memory.stores == 1

    @pytest.mark.parametrize("watched", [False, True])
    def test_misuse_is_refused_and_changes_nothing(self, memory, watched):
        if watched:
            memory.faults.append(CrashAfter(1000))
        memory.write(0, bytes(range(64)))
        before = memory.read(0, 64)
        for number, misuse in enumerate(MISUSES):
            with pytest.raises(MemoryAccessError):
                misuse(memory)
            assert memory.read(0, memory.size) == before, number
            assert memory.stores == len(memory.log) == 8, number

    @cases("size", [-8, 7])
    def test_a_size_is_whole_words(self, size, tmp_path):
        for make in (Memory.anonymous, Memory.memfd, lambda n: Memory.file(tmp_path / "f", n)):
            with pytest.raises(MemoryAccessError, match="multiple of 8"):
                make(size)

    def test_more_than_there_is(self):
        with pytest.raises(MemoryAccessError, match="cannot allocate"):
            Memory.anonymous(1 << 62)

    def test_of_nothing(self):
        memory = Memory.anonymous(0)
        assert memory.read(0, 0) == b""
        with pytest.raises(MemoryAccessError):
            memory.store_u64(0, 1)
        memory.grow(8)
        memory.store_u64(0, 1)
        assert memory.load_u64(0) == 1


class TestSize:
    def test_grows_to_the_next_word(self, memory):
        memory.store_u64(56, 9)
        memory.grow(65)
        assert memory.size == 72
        assert memory.load_u64(56) == 9
        assert memory.load_u64(64) == 0
        memory.grow(8)
        assert memory.size == 72

    def test_what_comes_back_is_zero(self, memory):
        memory.write(0, b"\xff" * 64)
        memory.resize(8)
        memory.resize(24)
        assert memory.read(0, 24) == b"\xff" * 8 + bytes(16)

    def test_a_view_survives(self, memory):
        view = memory.bytes
        memory.store_u64(0, 1)
        memory.grow(4096)
        memory.close()
        assert view[0] == 1

    def test_a_closed_one_says_so(self, memory):
        memory.close()
        memory.close()
        for use in (
            lambda: memory.load_u64(0),
            lambda: memory.store_u64(0, 0),
            lambda: memory.write(0, bytes(8)),
            lambda: memory.read(0, 8),
            lambda: memory.grow(8),
            memory.refresh,
        ):
            with pytest.raises(MemoryAccessError, match="closed"):
                use()


class TestFiles:
    def test_what_is_stored_is_in_the_file(self, tmp_path):
        path = tmp_path / "vmo"
        with Memory.file(path, 16) as memory:
            memory.store_u64(8, 1)
            assert path.read_bytes() == bytes(8) + b"\1" + bytes(7)
        with Memory.file(path) as again:
            assert again.load_u64(8) == 1

    def test_a_larger_file_stays_so(self, tmp_path):
        path = tmp_path / "vmo"
        path.write_bytes(b"x" * 32)
        with Memory.file(path, 16) as memory:
            assert memory.size == 32

    def test_two_memories_of_a_file_are_one(self, tmp_path):
        with Memory.file(tmp_path / "f", 16) as one, Memory.file(tmp_path / "f") as other:
            one.store_u64(0, 7)
            assert other.load_u64(0) == 7
            one.grow(32)
            one.store_u64(24, 8)
            assert other.refresh() == 32
            assert other.load_u64(24) == 8

    def test_opened_for_reading_it_takes_no_stores(self, tmp_path):
        path = tmp_path / "f"
        path.write_bytes(bytes(16))
        path.chmod(0o444)
        with Memory.file(path, writable=False) as memory:
            for misuse in (
                lambda: memory.store_u64(0, 1),
                lambda: memory.write(0, bytes(8)),
                lambda: memory.grow(64),
            ):
                with pytest.raises(MemoryAccessError, match="for reading"):
                    misuse()
            memory.faults.append(CrashAfter(5))
            with pytest.raises(MemoryAccessError, match="for reading"):
                memory.store_u64(0, 1)
            assert memory.load_u64(0) == 0

    @cases(("content", "message"), [(None, "No such file"), (b"123", "not a multiple of 8")])
    def test_a_file_that_is_none(self, tmp_path, content, message):
        path = tmp_path / "f"
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(MemoryAccessError, match=message):
            Memory.file(path)

    def test_no_descriptor_is_left_open(self, tmp_path):
        def descriptors():
            gc.collect()
            return len(list(Path("/proc/self/fd").iterdir()))

        (tmp_path / "odd").write_bytes(b"odd")
        before = descriptors()
        for _ in range(3):
            with pytest.raises(MemoryAccessError):
                Memory.file(tmp_path / "odd")
            with Memory.memfd(64) as memory:
                memory.grow(4096)
            Memory.memfd(64)
        assert descriptors() == before

    def test_an_anonymous_one_has_no_descriptor(self):
        with pytest.raises(MemoryAccessError, match="no file"):
            Memory.anonymous(8).fileno()

    def test_a_descriptor_that_is_none(self):
        with pytest.raises(MemoryAccessError, match="descriptor"):
            Memory.descriptor(10_000)


WRITER = """
import sys
from fx_emulator.memory import Memory
with Memory.file(sys.argv[1]) as memory:
    number = 0
    while True:
        number += 1
        value = number % 255 * 0x0101010101010101
        memory.write(8, value.to_bytes(8, "little") * 3)
        memory.store_u64(32, value)
        memory.store_u64(0, number)
"""


class TestProcesses:
    def test_one_stores_and_is_killed_the_other_loads(self, tmp_path):
        path = tmp_path / "shared"
        with Memory.file(path, 64) as memory:
            root = str(Path(fx_emulator.__file__).parents[1])
            path_there = os.pathsep.join([root, *filter(None, sys.path)])
            writer = subprocess.Popen(
                [sys.executable, "-c", WRITER, str(path)],
                env={**os.environ, "PYTHONPATH": path_there},
            )
            try:
                seen = 0
                while seen < 2000:
                    assert writer.poll() is None
                    committed = memory.load_u64(0)
                    assert committed >= seen
                    seen = committed
                    for offset in (8, 16, 24, 32):
                        # All bytes of a word are the same one, or the word was torn.
                        word = memory.load_u64(offset)
                        assert word == (word & 0xFF) * 0x0101010101010101
            finally:
                writer.send_signal(signal.SIGKILL)
                writer.wait()
            # What was stored before the last commit is all there: ascending, so that each word has
            # the value of that commit, or of the round that came after it.
            number = memory.load_u64(0)
            rounds = [memory.load_u64(at) & 0xFF for at in (8, 16, 24, 32)]
            assert set(rounds) <= {number % 255, (number + 1) % 255}
            order = [(value - number) % 255 for value in rounds]
            assert order == sorted(order, reverse=True)

    def test_a_memfd_is_handed_over(self):
        with Memory.memfd(64) as memory:
            code = (
                "import sys; from fx_emulator.memory import Memory; "
                "Memory.descriptor(int(sys.argv[1])).store_u64(8, 0xABCDEF)"
            )
            root = str(Path(fx_emulator.__file__).parents[1])
            subprocess.run(
                [sys.executable, "-c", code, str(memory.fileno())],
                pass_fds=[memory.fileno()],
                env={**os.environ, "PYTHONPATH": os.pathsep.join([root, *filter(None, sys.path)])},
                check=True,
            )
            assert memory.load_u64(8) == 0xABCDEF


# --- Faults and the log --------------------------------------------------------------------------


class TestHalting:
    def test_nothing_is_stored_after_a_crash(self, memory):
        memory.faults.append(CrashAfter(2))
        memory.write(0, b"\1" * 16)
        for _ in range(2):
            with pytest.raises(Crash):
                memory.store_u64(16, 1)
            with pytest.raises(Crash):
                memory.write(24, bytes(8))
            with pytest.raises(Crash):
                memory.grow(1024)
        memory.faults = [memory.faults[0]]
        assert memory.read(0, 64) == b"\1" * 16 + bytes(48)
        assert memory.stores == len(memory.log) == 2
        assert "after 2 stores" in str(memory.crashed)

    def test_a_bulk_write_is_cut_at_the_word(self, memory):
        memory.faults.append(CrashAfter(3))
        with pytest.raises(Crash):
            memory.write(0, b"\7" * 64)
        assert memory.read(0, 64) == b"\7" * 24 + bytes(40)

    @pytest.mark.parametrize("nbytes", range(1, 8))
    def test_a_torn_store_leaves_its_low_bytes(self, memory, nbytes):
        memory.store_u64(0, 0x1111111111111111)
        memory.faults.append(TornWrite(store=1, nbytes=nbytes))
        with pytest.raises(Crash) as crash:
            memory.store_u64(0, 0x2222222222222222)
        assert crash.value.landed == nbytes
        with pytest.raises(Crash):
            memory.store_u64(0, 0x3333333333333333)
        assert memory.stores == 2
        assert memory.read(0, 8) == b"\x22" * nbytes + b"\x11" * (8 - nbytes)
        assert memory.log.image(bytes(64), 2) == memory.read(0, 64)

    def test_halt_and_resume(self, memory):
        memory.halt(Crash("another memory crashed"))
        with pytest.raises(Crash, match="another memory"):
            memory.store_u64(0, 1)
        memory.halt(Crash("again"))
        memory.resume()
        memory.store_u64(0, 1)
        assert memory.crashed is None
        assert memory.faults == []

    def test_faults_are_asked_in_order(self, memory):
        asked = []
        memory.faults.append(lambda o, v, n: asked.append((o, v, n)) or v + 1)
        memory.faults.append(lambda o, v, n: asked.append((o, v, n)) or v * 2)
        memory.write(8, (5).to_bytes(8, "little"))
        memory.store_u64(0, 1)
        assert asked == [(8, 5, 0), (8, 6, 0), (0, 1, 1), (0, 2, 1)]
        assert memory.log.values.tolist() == [12, 4]
        assert memory.load_u64(8) == 12


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("store"), st.integers(0, WORDS - 1), U64),
        st.tuples(st.just("write"), st.integers(0, WORDS), st.lists(U64, max_size=5)),
        st.tuples(st.just("resize"), st.integers(0, 2 * WORDS), st.none()),
    ),
    max_size=25,
)


@given(STEPS, st.sampled_from([Memory.anonymous, Memory.memfd]), st.booleans())
def test_as_a_bytearray_at_every_store(steps, make, watched):
    memory = make(8 * WORDS, log=True)
    if watched:
        memory.faults.append(lambda _offset, value, _number: value)
    model = bytearray(8 * WORDS)
    history = [bytes(model)]

    def store(place, values):
        for at, value in enumerate(values, place):
            model[8 * at : 8 * at + 8] = value.to_bytes(8, "little")
            history.append(bytes(model))

    for what, place, value in steps:
        if what == "resize":
            memory.resize(8 * place)
            model[:] = bytes(model[: 8 * place]).ljust(8 * place, b"\0")
            history[-1] = bytes(model)
            continue
        values = [value] if what == "store" else value
        data = np.array(values, np.uint64).tobytes()
        if 8 * (place + len(values)) > len(model):
            with pytest.raises(EmulatorError):
                memory.write(8 * place, data)
        elif what == "store":
            memory.store_u64(8 * place, value)
            store(place, values)
        else:
            memory.write(8 * place, data)
            store(place, values)
    first = bytes(8 * WORDS)
    assert memory.read(0, memory.size) == bytes(model)
    assert memory.stores == len(memory.log) == len(history) - 1
    assert [bytes(image) for image in memory.log.images(first)] == history
    assert [memory.log.image(first, n) for n in range(len(history))] == history


@given(st.lists(st.tuples(st.integers(0, WORDS - 1), U64), max_size=12), st.data())
def test_a_crash_leaves_what_the_log_says(stores, data):
    whole = Memory.anonymous(8 * WORDS, log=True)
    for place, value in stores:
        whole.store_u64(8 * place, value)
    cut = data.draw(st.integers(0, len(stores)))
    memory = Memory.anonymous(8 * WORDS)
    memory.faults.append(CrashAfter(cut))
    try:
        for place, value in stores:
            memory.store_u64(8 * place, value)
    except Crash:
        assert cut < len(stores)
    assert memory.read(0, memory.size) == whole.log.image(bytes(8 * WORDS), cut)


def test_no_image_of_stores_that_were_not_made():
    with pytest.raises(MemoryAccessError, match="holds 0"):
        StoreLog().image(bytes(8), 1)


def test_a_log_may_begin_later():
    memory = Memory.anonymous(16)
    memory.store_u64(0, 1)
    first = memory.read(0, 16)
    memory.log = StoreLog()
    memory.store_u64(8, 2)
    assert memory.log.image(first, 1) == memory.read(0, 16)
    assert memory.log.sizes == ()
