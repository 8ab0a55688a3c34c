"""Which accesses of an instruction are one, and which come apart, as the table in the docs says.

Every form runs on two threads in both memory orders. What they leave in memory is compared with the
outcomes of a machine that is given the form's loads and stores.
"""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fx_emulator.native import explore
from fx_emulator.target import Target

from ...cases import cases
from . import litmus
from .building import compiler
from .litmus import L, R, W

MASK = (1 << 64) - 1
X, Y = 0, 1
FIRST = 0x55
"""Word X at the start."""

Update = Callable[[int, int], int]


def rotated(x: int, by: int) -> int:
    return (x << by | x >> 64 - by) & MASK


# What each form makes of word X, for thread k = 1 or 2: RDI is the memory, RSI is k.
UPDATES: dict[str, Update] = {
    "addq %rsi,(%rdi)": lambda x, k: x + k,
    "addl %esi,(%rdi)": lambda x, k: x + k,
    "addw %si,(%rdi)": lambda x, k: x + k,
    "addb %sil,(%rdi)": lambda x, k: x + k,
    "addq $1,(%rdi)": lambda x, _: x + 1,
    "subq %rsi,(%rdi)": lambda x, k: x - k,
    "clc; adcq %rsi,(%rdi)": lambda x, k: x + k,
    "stc; sbbq %rsi,(%rdi)": lambda x, k: x - k - 1,
    "incq (%rdi)": lambda x, _: x + 1,
    "decb (%rdi)": lambda x, _: x - 1,
    "notb (%rdi)": lambda x, _: x ^ 0xFF,
    "negq (%rdi)": lambda x, _: -x & MASK,
    "orq %rsi,(%rdi)": lambda x, k: x | k,
    "xorq %rsi,(%rdi)": lambda x, k: x ^ k,
    "notq %rsi; andq %rsi,(%rdi)": lambda x, k: x & ~k,
    "shlq $1,(%rdi)": lambda x, _: x << 1,
    "mov %esi,%ecx; shlq %cl,(%rdi)": lambda x, k: x << k,
    "shrq $1,(%rdi)": lambda x, _: x >> 1,
    "sarq $2,(%rdi)": lambda x, _: x >> 2,
    "rolq $4,(%rdi)": lambda x, _: rotated(x, 4),
    "rorq $4,(%rdi)": lambda x, _: rotated(x, 60),
    "clc; rclq $1,(%rdi)": lambda x, _: x << 1,
    "clc; rcrq $1,(%rdi)": lambda x, _: x >> 1,
    "shldq $8,%rsi,(%rdi)": lambda x, _: x << 8,
    "shrdq $2,%rax,(%rdi)": lambda x, _: x >> 2,
    "btcq $3,(%rdi)": lambda x, _: x ^ 8,
    "btsq %rsi,(%rdi)": lambda x, k: x | 1 << k,
    "add $64,%rsi; btsq %rsi,-8(%rdi)": lambda x, k: x | 1 << k,
    "btrl %esi,(%rdi)": lambda x, k: x & ~(1 << k),
    "btcw %si,(%rdi)": lambda x, k: x ^ 1 << k,
    "xaddq %rsi,(%rdi)": lambda x, k: x + k,
    "mov $0x55,%eax; cmpxchgq %rsi,(%rdi)": lambda x, k: k if x == FIRST else x,
    "mov $0x55,%eax; xor %edx,%edx; xor %ecx,%ecx; mov %rsi,%rbx; cmpxchg8b (%rdi)": (
        lambda x, k: k if x == FIRST else x
    ),
}
ATOMIC: dict[str, Update] = {
    "xchgq %rsi,(%rdi)": lambda _, k: k,
    "xchgb %sil,(%rdi)": lambda _, k: k,
    **{
        form.replace(name, f"lock {name}"): update
        for form, update in UPDATES.items()
        for name in ("add", "adc", "dec", "neg", "or", "bts", "btr", "xadd", "cmpxchg8b")
        if f" {name}" in f" {form}" and not form.startswith("add $64")
    },
}

# Other forms: the loads and stores of each, and a thread that runs beside it. Results are in words
# 8 to 11; words 12 to 15 are registers of the model, which the program keeps to itself.
WRITES_Y_X = ("movq $1,8(%rdi); movq $1,(%rdi)", [(W, Y, 1), (W, X, 1)])
READS_Y_X = (
    "mov 8(%rdi),%rax; mov (%rdi),%rcx; mov %rax,80(%rdi); mov %rcx,88(%rdi)",
    [(R, Y, 10), (R, X, 11)],
)
ONES = "mov $1,%eax; movq %rax,%xmm0; punpcklqdq %xmm0,%xmm0; "
KEEP = "; movups %xmm0,64(%rdi)"
STACK = "mov %rsp,%rcx; lea {}(%rdi),%rsp; "
BACK = "; mov %rcx,%rsp"
SEQUENCES: dict[str, tuple[list[tuple[Any, ...]], tuple[str, list[tuple[Any, ...]]]]] = {
    # Stores of 16 bytes are two.
    ONES + "movups %xmm0,(%rdi)": ([(W, X, 1), (W, Y, 1)], READS_Y_X),
    ONES + "movaps %xmm0,(%rdi)": ([(W, X, 1), (W, Y, 1)], READS_Y_X),
    ONES + "movntdq %xmm0,(%rdi)": ([(W, X, 1), (W, Y, 1)], READS_Y_X),
    "fld1; fstpt (%rdi)": ([(W, X, 1 << 63), (W, Y, 0x3FFF)], READS_Y_X),
    ONES + "movhps %xmm0,(%rdi)": ([(W, X, 1)], READS_Y_X),
    # So are loads.
    "movups (%rdi),%xmm0" + KEEP: ([(R, X, 8), (R, Y, 9)], WRITES_Y_X),
    "pxor %xmm0,%xmm0; paddq (%rdi),%xmm0" + KEEP: ([(R, X, 8), (R, Y, 9)], WRITES_Y_X),
    # String instructions, element by element.
    "mov $1,%eax; mov $2,%ecx; rep stosq; sub $16,%rdi": ([(W, X, 1), (W, Y, 1)], READS_Y_X),
    "std; mov $1,%eax; mov $2,%ecx; add $8,%rdi; rep stosq; cld": (
        [(W, Y, 1), (W, X, 1)],
        READS_Y_X,
    ),
    "mov %rdi,%rsi; lea 64(%rdi),%rdi; mov $2,%ecx; rep movsq": (
        [(R, X, 8), (R, Y, 9)],
        WRITES_Y_X,
    ),
    "mov %rdi,%rsi; add $8,%rdi; movsq": ([(R, X, 12), (W, Y, lambda m: m[12])], READS_Y_X),
    "mov %rdi,%rsi; lea 8(%rdi),%rdi; cmpsq; sete 48(%rdi)": (
        [(R, X, 12), (R, Y, 13), (W, 8, lambda m: int(m[12] == m[13]))],
        WRITES_Y_X,
    ),
    # The stack.
    "push $1; popq (%rdi)": ([(W, X, 1)], READS_Y_X),
    STACK.format(16) + "push $1" + BACK: ([(W, Y, 1)], READS_Y_X),
    STACK.format(16) + "pushq (%rdi)" + BACK: ([(R, X, 12), (W, Y, lambda m: m[12])], READS_Y_X),
    STACK.format(0) + "popq 8(%rdi)" + BACK: ([(R, X, 12), (W, Y, lambda m: m[12])], READS_Y_X),
    STACK.format(0) + "popq (%rsp)" + BACK: ([(R, X, 12), (W, Y, lambda m: m[12])], READS_Y_X),
    STACK.format(16) + "call 1f; 1: mov %rcx,%rsp; movq $1,8(%rdi)": (
        [(W, Y, 2), (W, Y, 1)],
        READS_Y_X,
    ),
}
CROSSING: dict[str, tuple[list[tuple[Any, ...]], tuple[str, list[tuple[Any, ...]]]]] = {
    # RDI is 8 bytes before the end of a cache line here: X and Y are in two lines.
    "movabs $0x100000000,%rax; inc %rax; movq %rax,4(%rdi)": (
        [(W, X, 1 << 32), (W, Y, 1)],
        READS_Y_X,
    ),
    "movq 4(%rdi),%rax; mov %eax,68(%rdi); shr $32,%rax; mov %rax,72(%rdi)": (
        [(R, X, 8), (R, Y, 9)],
        ("movabs $0x100000000,%rax; movq $1,8(%rdi); movq %rax,(%rdi)",
         [(W, Y, 1), (W, X, 1 << 32)]),
    ),
}  # fmt: skip


def assembled(folder: Path, bodies: list[str]) -> Path:
    """A shared object with a function for each body, f0, f1, …; they keep RBX."""
    lines = [
        f".globl f{number}\n.type f{number},@function\nf{number}: push %rbx; {body}; pop %rbx; ret"
        f"\n.size f{number},.-f{number}"
        for number, body in enumerate(bodies)
    ]
    (folder / "forms.s").write_text("\n".join(lines) + "\n")
    out = folder / "forms.so"
    command = [compiler("gcc"), "-shared", "-nostdlib", "-g", "-o", str(out)]
    subprocess.run([*command, str(folder / "forms.s")], check=True, timeout=60)
    return out


def left(path: Path, order: Any, base: int = 0, **options: Any) -> set[tuple[int, ...]]:
    """Words 0 to 15 from ``base`` on, after every schedule of f0(memory, 1) and f1(memory, 2)."""
    found = set()
    with Target(cpus=2) as target:
        program = target.load(path, memory_order=order)
        memory = target.vmo("memory", 4096)
        memory.store_u64(base, FIRST if not base else 0)

        def check(image: bytes) -> None:
            found.add(struct.unpack_from("<16Q", image, base))

        device = program.address(memory)
        threads = [program.entry(f"f{n}", device + base, n + 1) for n in (0, 1)]
        options = {"preemptions": None, **options}
        report = explore(threads, check, memory=memory, crash=False, **options)
        assert report.ok, report
    return found


ORDERS = pytest.mark.parametrize("order", ["program", "tso"])


@ORDERS
@cases("form", UPDATES)
def test_an_unlocked_update_is_a_load_and_a_store(tmp_path: Path, form: str, order: str) -> None:
    update = UPDATES[form]
    threads = [[(R, X, 8 + k), (W, X, lambda m, k=k: update(m[8 + k], k) & MASK)] for k in (1, 2)]
    wanted = {each[X] for each in litmus.outcomes(threads, buffered=order == "tso", first=(FIRST,))}
    assert len(wanted) > 1, "the form must be able to lose an update"
    path = assembled(tmp_path, [form, form])
    assert {each[X] for each in left(path, order)} == wanted


@ORDERS
@cases("form", ATOMIC)
def test_a_locked_update_is_one(tmp_path: Path, form: str, order: str) -> None:
    update = ATOMIC[form]
    threads = [[(L, X, lambda m, k=k: update(m[X], k) & MASK)] for k in (1, 2)]
    wanted = {each[X] for each in litmus.outcomes(threads, buffered=order == "tso", first=(FIRST,))}
    path = assembled(tmp_path, [form, form])
    assert {each[X] for each in left(path, order)} == wanted


@ORDERS
@cases("form", [*SEQUENCES, *CROSSING])
def test_long_accesses_come_apart(tmp_path: Path, form: str, order: str) -> None:
    events, (beside, others) = (SEQUENCES | CROSSING)[form]
    base = 56 if form in CROSSING else 0
    wanted = litmus.outcomes(
        [events, others], buffered=order == "tso", first=(0 if base else FIRST,)
    )
    found = left(assembled(tmp_path, [form, beside]), order, base)
    if "call" in form:
        # The return address stands for 2.
        found = {tuple(2 if each > FIRST else each for each in one) for one in found}
    assert {each[:12] for each in found} == {each[:12] for each in wanted}


FORMS = [
    *(form.split("; ")[-1] for form in (*UPDATES, *ATOMIC)),
    *"""
    movq $1,(%rdi) | movb %al,(%rdi) | movq (%rdi),%rax | sete (%rdi) | cmpq %rax,(%rdi)
    testq %rax,(%rdi) | imulq (%rdi),%rax | mulq (%rdi) | cmovneq (%rdi),%rax | movntiq %rax,(%rdi)
    movsq | movsb | movsl | movsw | stosq | stosb | lodsq | scasq | cmpsq | rep movsq | rep stosb
    repne scasb | movups %xmm0,(%rdi) | movaps %xmm0,(%rdi) | movdqu (%rdi),%xmm0
    movntdq %xmm0,(%rdi) | movss %xmm0,(%rdi) | movsd %xmm0,(%rdi) | movq %xmm0,(%rdi)
    movhps %xmm0,(%rdi) | movlpd (%rdi),%xmm0 | addps (%rdi),%xmm0 | cvtsi2sdq (%rdi),%xmm0
    fstpt (%rdi) | fldt (%rdi) | fstpl (%rdi) | fsts (%rdi) | fildll (%rdi) | fistpll (%rdi)
    fisttpll (%rdi) | faddl (%rdi) | fnstcw (%rdi) | fldcw (%rdi) | fnstsw (%rdi) | stmxcsr (%rdi)
    push %rax | pushq (%rdi) | pushw %ax | pop %rax | popq (%rdi) | popq 8(%rsp) | call *(%rdi)
    call *%rax | jmp *(%rdi) | ret | leave | enter $16,$0 | pushfq | popfq | xlatb
    cmpxchg16b (%rdi) | lock cmpxchg16b (%rdi) | btq %rsi,(%rdi) | btsl %esi,(%rdi)
    btrw %si,(%rdi) | lea (%rdi),%rax | nopw (%rdi) | prefetcht0 (%rdi) | clflush (%rdi)
    movq %gs:8,%rax | addl $1,8(%rdi,%rcx,4) | movabsq %rax,0x11000 | xchgq %rax,(%rdi)
    """.replace("\n", "|")
    .strip(" |")
    .split("|"),
]


def test_every_form_uses_the_memory_that_the_decoder_says(tmp_path: Path) -> None:
    """The bytes that the engine loads and stores are those of the decoded parts."""
    forms = [each.strip() for each in FORMS if each.strip()]
    program = Target().load(assembled(tmp_path, forms))
    machine, engine = program.machine, program.machine.engine
    data = machine.space.map("data", 0x11000, 0x4000, 3)
    used: set[tuple[bool, int]] = set()

    def on_access(kind: int, address: int, size: int, _value: int) -> None:
        used.update((kind == 17, at) for at in range(address, address + size))

    engine.on_access(on_access, data.start, data.end - 1, reads=True)
    thread = machine.main
    for number, form in enumerate(forms):
        start = program.symbols[f"f{number}"] + 1
        machine.start(thread, start)
        machine.select(thread)
        data.view[:] = bytes(data.size)
        values = {"rdi": 0x12000, "rsi": 0x12345, "rcx": 3, "rsp": 0x13000, "rbp": 0x13800}
        for name, value in {**values, "rbx": 0x14000, "gs_base": 0x12800, "rax": 0x12100}.items():
            engine.set(name, value)
        access = machine.decoder.access(start)
        assert access is not None, form
        parts = access.parts(machine.operands.of)
        wanted = {
            (part.writes, at)
            for part in parts
            for at in range(part.address, part.address + part.size)
        }
        used.clear()
        engine.run(start, 0, 1)
        assert used == wanted, form
