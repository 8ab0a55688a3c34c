"""The contracts of a declared format, as `fxf plugins --check` runs them."""

from __future__ import annotations

from fxframework import hookimpl, wire
from fxframework.host import Host
from fxframework.testing.checkup import contracts_of, run_contract


class Shown(wire.Record, size=16):
    """What a writer ignores is shown: a count, a repeated number, what is computed."""

    count: int = wire.u8()
    again: int = wire.u8(equals=count)
    numbers: tuple[int, ...] = wire.listed(wire.u8(), count)
    twice: int = wire.computed(count * 2)


SHOWN = wire.Format("shown", "Shown: for tests", Shown, codes="SHO")


class Plugin:
    @hookimpl
    def fx_readers(self):  # type: ignore[no-untyped-def]
        return [SHOWN.reader]

    @hookimpl
    def fx_writers(self):  # type: ignore[no-untyped-def]
        return [SHOWN.writer]


def test_what_a_writer_ignores_is_known() -> None:
    assert SHOWN.derived == {"count", "again", "twice"}
    host = Host(discover=False)
    host.register(Plugin(), name="shown")
    _, writer = contracts_of(host, "shown")
    only = ["test_wrong_values_are_refused_or_take_effect"]
    assert [(each.status, each.fault) for each in run_contract(writer, only=only)] == [("ok", "")]
