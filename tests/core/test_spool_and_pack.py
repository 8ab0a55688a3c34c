"""Sources that were gathered first, sinks that compress, and the worst of some findings."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import toy

from fxframework.errors import LimitError, Severity
from fxframework.io import source as source_module
from fxframework.io.limits import Limits
from fxframework.io.sink import Sink
from fxframework.io.source import Source, spool_file
from fxframework.model.diagnostics import Diagnostics

from ..cases import cases


@cases("limit", [1 << 20, 10])
def test_what_was_spooled_is_a_source(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(source_module, "IN_MEMORY", limit)
    with spool_file() as spool:
        spool.write(b"0123456789" * 3)
        source = Source.spooled(spool, name="it")
    assert source.read(0, 100) == b"0123456789" * 3
    assert (source.size, source.name) == (30, "it")


@cases("path", ["/proc/self/cmdline", "/proc/version", "/sys/kernel/notes"])
def test_a_file_whose_size_says_nothing_is_read(path: str) -> None:
    if not Path(path).exists():
        pytest.skip(f"this machine has no {path}")
    assert Source.open(path).data.tobytes() == Path(path).read_bytes() != b""


def test_a_device_that_never_ends_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path("/dev/zero").is_char_device():
        pytest.skip("this machine has no /dev/zero")
    with pytest.raises(LimitError, match=r"/dev/zero: the input has more than 9 bytes .max_memory"):
        Source.open("/dev/zero", limits=Limits(max_memory=9))
    monkeypatch.setattr(source_module, "MEMORY_FLOOR", 1 << 20)
    with pytest.raises(LimitError, match="max_memory"):
        Source.open("/dev/zero", limits=Limits())


def test_nothing_spooled() -> None:
    with spool_file() as spool:
        assert Source.spooled(spool, name="it").size == 0


def test_a_gz_sink_compresses_and_is_whole_or_not_there(tmp_path: Path) -> None:
    path = tmp_path / "a.GZ"
    with Sink.open(path) as sink:
        sink.write(b"x" * 1000)
        assert sink.written == 1000
        assert not path.exists()
    assert gzip.decompress(path.read_bytes()) == b"x" * 1000
    sink = Sink.open(path, force=True)
    sink.write(b"never")
    sink.abort()
    assert gzip.decompress(path.read_bytes()) == b"x" * 1000
    assert list(tmp_path.iterdir()) == [path]


def test_the_worst_finding_counts_whether_it_is_kept_or_not() -> None:
    found = Diagnostics(toy.RULES, limit=1)
    assert found.worst is None
    found.add(toy.ZEROS)
    assert found.worst == Severity.INFO
    found.add(toy.ZEROS, severity=Severity.ERROR)
    assert (len(found), found.worst) == (1, Severity.ERROR)
    found.forget(["TOY0003"])
    assert found.worst is None
    found.add(toy.UNDEFINED_KIND, times=5)
    assert found[:1] == [found[0]]
    assert found.counts == {"TOY0002": 5}
