"""VMOs with their children, against one that copies eagerly; rights, and what is committed."""

from __future__ import annotations

import itertools

import hypothesis
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    precondition,
    rule,
)

from fx_emulator.errors import Crash, EmulatorError, MemoryAccessError, RightsError, VmoError
from fx_emulator.faults import CrashAfter
from fx_emulator.memory import Memory
from fx_emulator.vmo import DEFAULT_RIGHTS, MOST_BYTES, PAGE, Rights, Vmo
from fxframework.model import target

from ..cases import cases

# --- Contents and commitment, against a model ----------------------------------------------------


class Model:
    """A VMO that copies eagerly. A page is a token that those who share it have in common."""

    order = itertools.count()

    def __init__(self, contents, pages, parent=None, base=0):
        self.number = next(self.order)
        self.contents = contents
        self.pages = pages
        self.parent = parent
        """Of a slice: whose bytes and pages it has, from page ``base`` on."""
        self.base = base

    @property
    def size(self):
        return len(self.contents) if self.parent is None else len(self.pages) * PAGE

    def root(self):
        return (self, 0) if self.parent is None else (self.parent, self.base)

    def read(self, at, n):
        root, base = self.root()
        return bytes(root.contents[base * PAGE + at : base * PAGE + at + n])

    def write(self, at, data, roots):
        root, base = self.root()
        at += base * PAGE
        root.contents[at : at + len(data)] = data
        for page in range(at // PAGE, (at + len(data) - 1) // PAGE + 1 if data else 0):
            alone = sum(root.pages[page] is p for m in roots for p in m.pages) <= 1
            if root.pages[page] is None or not alone:
                root.pages[page] = object()


AROUND = st.one_of(st.integers(-20, 20), st.integers(PAGE - 20, PAGE + 20))


class VmoMachine(RuleBasedStateMachine):
    vmos = Bundle("vmos")

    def __init__(self):
        super().__init__()
        self.koids = itertools.count(5000)
        self.live = []
        self.seen_koids = set()

    def roots(self):
        """The models that have pages: of VMOs with a handle, or of which a slice has one."""
        return list({id(m.root()[0]): m.root()[0] for _, m in self.live}.values())

    def add(self, vmo, model):
        self.live.append((vmo, model))
        assert vmo.koid not in self.seen_koids
        self.seen_koids.add(vmo.koid)
        return vmo, model

    @rule(target=vmos, pages=st.integers(0, 4), resizable=st.booleans(), filled=st.booleans())
    def create(self, pages, resizable, filled):
        size = max(0, pages * PAGE - 1)
        vmo = Vmo.create(size, resizable=resizable, koids=self.koids)
        assert vmo.content_size == size
        pair = self.add(vmo, Model(bytearray(pages * PAGE), [None] * pages))
        if filled:
            vmo.write(0, b"f" * size)
            pair[1].write(0, b"f" * size, self.roots())
        return pair

    @rule(pair=vmos, page=st.integers(0, 4), at=AROUND, n=AROUND, fill=st.sampled_from(b"abc"))
    def write(self, pair, page, at, n, fill):
        vmo, model = pair
        at += page * PAGE
        content = bytes([fill]) * max(0, n)
        if not 0 <= at <= model.size - len(content):
            with pytest.raises(MemoryAccessError):
                vmo.write(at, content)
            return
        vmo.write(at, content)
        model.write(at, content, self.roots())

    @rule(pair=vmos, data=st.data(), value=st.integers(0, 2**64 - 1), mapped=st.booleans())
    def store(self, pair, data, value, mapped):
        vmo, model = pair
        if not model.size:
            return
        at = 8 * data.draw(st.integers(0, model.size // 8 - 1))
        if mapped:
            first = at // PAGE * PAGE
            with vmo.map(first, PAGE) as mapping:
                mapping.store_u64(at - first, value)
                assert mapping.load_u64(at - first) == value
        else:
            vmo.store_u64(at, value)
            assert vmo.load_u64(at) == value
        model.write(at, value.to_bytes(8, "little"), self.roots())

    @rule(
        target=vmos,
        pair=vmos,
        first=st.sampled_from([0, 0, 1, 4]),
        pages=st.integers(0, 5),
        resizable=st.booleans(),
    )
    def snapshot(self, pair, first, pages, resizable):
        vmo, model = pair
        child = vmo.snapshot(first * PAGE, pages * PAGE, resizable=resizable)
        root, base = model.root()
        own = model.size // PAGE
        shared = [root.pages[base + i] if i < own else None for i in range(first, first + pages)]
        contents = model.read(first * PAGE, max(0, min(pages, own - first)) * PAGE)
        return self.add(child, Model(bytearray(contents.ljust(pages * PAGE, b"\0")), shared))

    @precondition(lambda self: any(not vmo.resizable for vmo, _ in self.live))
    @rule(target=vmos, data=st.data())
    def slice(self, data):
        vmo, model = data.draw(st.sampled_from([p for p in self.live if not p[0].resizable]))
        own = model.size // PAGE
        first = data.draw(st.integers(0, own))
        pages = data.draw(st.integers(0, own - first))
        root, base = model.root()
        child = vmo.slice(first * PAGE, pages * PAGE)
        return self.add(child, Model(None, [None] * pages, parent=root, base=base + first))

    @rule(pair=vmos, pages=st.integers(0, 6), missing=st.integers(0, 100))
    def resize(self, pair, pages, missing):
        vmo, model = pair
        size = max(0, pages * PAGE - missing)
        if not vmo.resizable:
            with pytest.raises(VmoError, match="not resizable"):
                vmo.set_size(size)
            return
        vmo.set_size(size)
        rounded = -(-size // PAGE) * PAGE
        assert (vmo.size, vmo.content_size) == (rounded, size)
        model.contents[:] = bytes(model.contents[:rounded]).ljust(rounded, b"\0")
        model.pages = (model.pages + [None] * pages)[: rounded // PAGE]

    @rule(pair=consumes(vmos))
    def close(self, pair):
        vmo, _ = pair
        vmo.close()
        vmo.close()
        with pytest.raises(VmoError, match="closed handle"):
            vmo.load_u64(0)
        self.live.remove(pair)

    @invariant()
    def contents_are_as_if_copied(self):
        for vmo, model in self.live:
            assert vmo.size == model.size
            assert vmo.read(0, vmo.size) == model.read(0, model.size)
            for at in range(0, model.size, PAGE // 2):
                assert vmo.load_u64(at) == int.from_bytes(model.read(at, 8), "little")

    @invariant()
    def each_page_is_counted_once_for_the_first_that_has_it(self):
        for vmo, model in self.live:
            root, base = model.root()
            mine = root.pages[base : base + model.size // PAGE]
            expected = 0
            for page in mine:
                owners = [m.number for m in self.roots() if any(page is p for p in m.pages)]
                expected += page is not None and min(owners) == root.number
            assert vmo.committed_pages == expected


VmoMachine.TestCase.settings = hypothesis.settings(stateful_step_count=40)
TestVmoAgainstTheModel = VmoMachine.TestCase


def test_a_shrunk_snapshot_gets_zeros_back_and_not_its_parents_pages():
    vmo = Vmo.create(3 * PAGE)
    vmo.write(0, b"p" * 3 * PAGE)
    copy = vmo.snapshot(resizable=True)
    copy.store_u64(PAGE, 5)
    copy.set_size(0)
    copy.set_size(3 * PAGE)
    assert copy.read(0, 3 * PAGE) == bytes(3 * PAGE)
    assert (vmo.committed_pages, copy.committed_pages) == (3, 0)


def test_a_copied_page_is_the_snapshots_own():
    vmo = Vmo.create(2 * PAGE)
    vmo.write(0, b"p" * 2 * PAGE)
    copy = vmo.snapshot()
    again = copy.snapshot()
    copy.store_u64(0, int.from_bytes(b"pppppppp", "little"))
    copy.write(PAGE - 4, b"ccccdddd")
    assert copy.read(PAGE - 8, 16) == b"ppppccccddddpppp"
    assert copy.load_u64(PAGE) == int.from_bytes(b"ddddpppp", "little")
    assert [v.committed_pages for v in (vmo, copy, again)] == [2, 2, 0]
    vmo.write(0, b"q" * 2 * PAGE)
    assert again.read(0, 2 * PAGE) == b"p" * 2 * PAGE
    assert [v.committed_pages for v in (vmo, copy, again)] == [2, 2, 2]


def test_a_closed_parent_leaves_its_pages_to_its_snapshots():
    vmo = Vmo.create(3 * PAGE)
    vmo.write(0, b"p" * 3 * PAGE)
    one, other = vmo.snapshot(), vmo.snapshot(PAGE)
    vmo.close()
    assert one.read(0, 3 * PAGE) == b"p" * 3 * PAGE
    assert (one.committed_pages, other.committed_pages) == (3, 0)
    one.close()
    assert other.committed_pages == 2
    assert other.read(0, 2 * PAGE) == b"p" * 2 * PAGE


# --- Sizes, names, properties --------------------------------------------------------------------


def test_is_a_memory_of_the_protocol():
    vmo = Vmo.create(PAGE)
    assert isinstance(vmo, target.Memory)
    assert isinstance(vmo.map(), target.Memory)


def test_sizes_are_pages_and_content_is_bytes():
    vmo = Vmo.create(100)
    assert (vmo.size, vmo.content_size) == (PAGE, 100)
    vmo.set_content_size(PAGE)
    assert vmo.content_size == PAGE
    with pytest.raises(MemoryAccessError):
        vmo.set_content_size(PAGE + 1)


def test_nothing_is_committed_before_it_is_stored_into():
    vmo = Vmo.create(1 << 30)
    assert vmo.read(1 << 29, 8) == bytes(8)
    assert vmo.load_u64(0) == 0
    assert vmo.committed_pages == 0
    vmo.store_u64(PAGE, 0)
    vmo.write(2 * PAGE - 4, b"12345678")
    assert vmo.committed_pages == 2
    vmo.write(4 * PAGE - 4, b"12345678")
    assert vmo.committed_pages == 4


def test_grows_up_to_the_most_bytes():
    vmo = Vmo.create(PAGE, resizable=True)
    vmo.store_u64(8, 7)
    vmo.grow(PAGE + 1)
    assert (vmo.size, vmo.content_size) == (2 * PAGE, PAGE + 1)
    vmo.grow(5)
    assert (vmo.size, vmo.load_u64(8)) == (2 * PAGE, 7)
    with pytest.raises(VmoError, match=f"0 to {MOST_BYTES}"):
        vmo.grow(MOST_BYTES + 1)
    with pytest.raises(VmoError, match="not resizable"):
        Vmo.create(PAGE).grow(PAGE + 1)


def test_koids_go_on_from_parent_to_child():
    koids = itertools.count(70)
    vmo = Vmo.create(PAGE, koids=koids)
    child = vmo.snapshot()
    grandchild = child.slice(0, PAGE)
    assert [v.koid for v in (vmo, child, grandchild)] == [70, 71, 72]
    assert vmo.duplicate().koid == 70


def test_names_have_31_bytes():
    vmo = Vmo.create(0, name="trace-buffer")
    other = vmo.duplicate()
    other.set_name("ü" * 20)
    assert vmo.name == "ü" * 15
    assert other.snapshot().name == vmo.name
    assert other.snapshot(name="copy").name == "copy"


# --- Rights --------------------------------------------------------------------------------------

TAKES = [
    (Rights.READ, lambda v: v.load_u64(0)),
    (Rights.READ, lambda v: v.read(0, 8)),
    (Rights.WRITE, lambda v: v.store_u64(0, 1)),
    (Rights.WRITE, lambda v: v.write(0, b"1")),
    (Rights.MAP, lambda v: v.map()),
    (Rights.READ, lambda v: v.map(write=False)),
    (Rights.WRITE, lambda v: v.map()),
    (Rights.DUPLICATE, lambda v: v.duplicate()),
    (Rights.DUPLICATE, lambda v: v.snapshot()),
    (Rights.READ, lambda v: v.snapshot()),
    (Rights.DUPLICATE | Rights.READ, lambda v: v.slice(0, PAGE)),
    (Rights.RESIZE, lambda v: v.set_size(PAGE)),
    (Rights.WRITE, lambda v: v.set_size(PAGE)),
    (Rights.RESIZE, lambda v: v.grow(3 * PAGE)),
    (Rights.GET_PROPERTY, lambda v: v.name),
    (Rights.GET_PROPERTY, lambda v: v.content_size),
    (Rights.SET_PROPERTY, lambda v: v.set_name("x")),
    (Rights.SET_PROPERTY, lambda v: v.set_content_size(1)),
]


@cases(("right", "use"), TAKES)
def test_each_operation_takes_its_right(right, use):
    vmo = Vmo.create(2 * PAGE, resizable=True)
    assert vmo.rights == DEFAULT_RIGHTS | Rights.RESIZE
    without = vmo.duplicate(vmo.rights & ~right)
    with pytest.raises(RightsError, match=r"VMO 1024"):
        use(without)
    assert vmo.read(0, vmo.size) == bytes(2 * PAGE)
    assert (vmo.committed_pages, vmo.content_size, vmo.name) == (0, 2 * PAGE, "")


def test_a_duplicate_has_no_more_rights():
    vmo = Vmo.create(PAGE)
    reader = vmo.duplicate(Rights.READ | Rights.DUPLICATE)
    with pytest.raises(RightsError, match="WRITE"):
        reader.duplicate(Rights.READ | Rights.WRITE)
    assert reader.duplicate().rights == Rights.READ | Rights.DUPLICATE


def test_what_a_child_may():
    vmo = Vmo.create(PAGE).duplicate(Rights.READ | Rights.DUPLICATE | Rights.MAP)
    copy = vmo.snapshot(resizable=True)
    copy.store_u64(0, 1)
    copy.set_size(2 * PAGE)
    window = vmo.slice(0, PAGE)
    with pytest.raises(RightsError):
        window.store_u64(0, 1)
    assert vmo.load_u64(0) == 0


def test_a_closed_handle_does_nothing_and_others_go_on():
    vmo = Vmo.create(PAGE)
    other = vmo.duplicate()
    with vmo:
        vmo.store_u64(0, 5)
    for _, use in TAKES:
        with pytest.raises(VmoError, match="closed handle"):
            use(vmo)
    assert other.load_u64(0) == 5


# --- Mappings ------------------------------------------------------------------------------------


class TestMappings:
    def test_is_a_window_that_stays(self):
        vmo = Vmo.create(3 * PAGE)
        mapping = vmo.map(PAGE, PAGE)
        mapping.store_u64(8, 1)
        mapping.write(16, bytes(range(16)))
        assert vmo.load_u64(PAGE + 8) == 1
        vmo.store_u64(PAGE, 2)
        window = vmo.slice(PAGE, PAGE)
        vmo.close()
        assert mapping.read(0, 32) == window.read(0, 32)
        assert mapping.load_u64(0) == 2
        assert mapping.size == PAGE

    @cases(
        "misuse",
        [
            lambda m: m.load_u64(PAGE),
            lambda m: m.load_u64(-8),
            lambda m: m.load_u64(3),
            lambda m: m.store_u64(PAGE, 0),
            lambda m: m.store_u64(5, 0),
            lambda m: m.write(0, b"1"),
            lambda m: m.write(PAGE - 8, bytes(16)),
            lambda m: m.read(PAGE - 1, 2),
            lambda m: m.grow(PAGE + 1),
        ],
    )
    def test_it_ends_where_it_ends(self, misuse):
        vmo = Vmo.create(3 * PAGE)
        with pytest.raises(EmulatorError):
            misuse(vmo.map(PAGE, PAGE))
        assert vmo.committed_pages == 0

    def test_for_reading(self):
        mapping = Vmo.create(PAGE).map(write=False)
        assert mapping.load_u64(0) == 0
        for misuse in (lambda: mapping.store_u64(0, 1), lambda: mapping.write(0, bytes(8))):
            with pytest.raises(RightsError, match="read-only"):
                misuse()

    def test_after_unmap_and_after_shrinking(self):
        vmo = Vmo.create(2 * PAGE, resizable=True)
        mapping = vmo.map()
        vmo.set_size(PAGE)
        for misuse in (
            lambda: mapping.load_u64(PAGE),
            lambda: mapping.store_u64(PAGE, 1),
            lambda: mapping.write(PAGE, bytes(8)),
            lambda: mapping.read(0, 2 * PAGE),
        ):
            with pytest.raises(MemoryAccessError):
                misuse()
        mapping.store_u64(0, 1)
        mapping.unmap()
        mapping.unmap()
        with pytest.raises(VmoError, match="unmapped"):
            mapping.load_u64(0)

    @cases(("offset", "length"), [(8, PAGE), (0, 100), (-PAGE, PAGE)])
    def test_whole_pages_only(self, offset, length):
        vmo = Vmo.create(2 * PAGE)
        for make in (vmo.map, vmo.slice):
            with pytest.raises(VmoError, match="multiples of 4096"):
                make(offset, length)

    def test_within_the_vmo_only(self):
        vmo = Vmo.create(2 * PAGE)
        for make in (vmo.map, vmo.slice):
            with pytest.raises(MemoryAccessError, match="outside"):
                make(PAGE, 2 * PAGE)


def test_a_resizable_vmo_has_no_slices():
    with pytest.raises(VmoError, match="take a snapshot"):
        Vmo.create(PAGE, resizable=True).slice(0, PAGE)


# --- The memory below ----------------------------------------------------------------------------


class TestMemoryBelow:
    def test_the_log_has_every_store_and_size(self):
        vmo = Vmo.create(PAGE, resizable=True, log=True)
        images = [vmo.read(0, PAGE)]
        vmo.write(5, b"abc")
        images.append(vmo.read(0, PAGE))
        vmo.store_u64(PAGE - 8, 1)
        vmo.set_size(2 * PAGE)
        images.append(vmo.read(0, 2 * PAGE))
        vmo.map().store_u64(PAGE, 2)
        images.append(vmo.read(0, 2 * PAGE))
        assert [bytes(image) for image in vmo.memory.log.images(bytes(PAGE))] == images

    def test_a_crash_cuts_a_write_and_leaves_snapshots_alone(self):
        vmo = Vmo.create(PAGE)
        vmo.write(0, b"\1" * 32)
        copy = vmo.snapshot()
        vmo.memory.faults.append(CrashAfter(6))
        with pytest.raises(Crash):
            vmo.write(0, b"\2" * 32)
        with pytest.raises(Crash):
            vmo.snapshot().memory.halt(Crash("x")) or vmo.store_u64(0, 3)
        assert vmo.read(0, 40) == b"\2" * 16 + b"\1" * 16 + bytes(8)
        assert copy.read(0, 40) == b"\1" * 32 + bytes(8)

    def test_a_halted_program_commits_nothing(self):
        vmo = Vmo.create(2 * PAGE)
        vmo.memory.halt(Crash("stopped"))
        with pytest.raises(Crash, match="stopped"):
            vmo.store_u64(PAGE, 1)
        assert vmo.committed_pages == 0

    def test_over_a_file_of_another_process(self, tmp_path):
        path = tmp_path / "vmo"
        with Memory.file(path, 3 * PAGE) as memory, Memory.file(path) as elsewhere:
            memory.store_u64(2 * PAGE, 9)
            vmo = Vmo.over(memory, name="shared")
            assert (vmo.size, vmo.committed_pages) == (3 * PAGE, 1)
            copy = vmo.snapshot()
            vmo.store_u64(2 * PAGE, 10)
            assert elsewhere.load_u64(2 * PAGE) == 10
            assert copy.load_u64(2 * PAGE) == 9
            elsewhere.store_u64(8, 4)
            assert vmo.load_u64(8) == 4
            vmo.close()
            assert memory.load_u64(8) == 4

    def test_over_pages_only(self):
        with pytest.raises(VmoError, match="multiple of 4096"):
            Vmo.over(Memory.anonymous(PAGE + 8))
