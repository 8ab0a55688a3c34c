"""Sample: a typical text of about a given size, which `fxf bench` and the contracts use."""

_LINES = """\
    shop-{a} (    7) [001] d.h1. {s}.{n:06d}: irq_handler_entry: irq=29 name=eth0
    shop-{a} (    7) [001] d.h1. {s}.{n:06d}: irq_handler_exit: irq=29 ret=handled
    shop-{a} (    7) [001] d.... {s}.{n:06d}: sched_wakeup: comm=ship pid={b} prio=120
    shop-{a} (    7) [001] d.... {s}.{n:06d}: sched_switch: prev_comm=shop prev_pid={a} \
prev_prio=120 prev_state=S ==> next_comm=ship next_pid={b} next_prio=120
"""


def sample(size: int) -> bytes:
    """A text of about so many bytes: switches, wakeups and interrupts of a CPU."""
    made = ["# tracer: nop\n"]
    while len(made) * len(_LINES) < size:
        s, n = divmod(40 * len(made), 1_000_000)
        made.append(_LINES.format(a=8 + len(made) % 5, b=8 + (len(made) + 1) % 5, s=s, n=n))
    return "".join(made).encode()
