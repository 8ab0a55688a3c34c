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


class Moment(wire.Record, size=8):
    """A time that may be too far."""

    time: int = wire.u64(unit="ns")


MOMENTS = wire.Format(
    "moments",
    "Moments: for tests",
    Moment,
    codes="MOM",
    tables=[wire.rows("instants", Moment, ts="time", name=wire.always("moment"))],
)


def check(form: wire.Format, test: str) -> None:
    """Check that a writer passes one test of its contract."""

    class Plugin:
        @hookimpl
        def fx_readers(self):  # type: ignore[no-untyped-def]
            return [form.reader]

        @hookimpl
        def fx_writers(self):  # type: ignore[no-untyped-def]
            return [form.writer]

    host = Host(discover=False)
    host.register(Plugin(), name=form.name)
    _, writer = contracts_of(host, form.name)
    assert [(each.status, each.fault) for each in run_contract(writer, only=[test])] == [("ok", "")]


def test_what_a_writer_ignores_is_known() -> None:
    assert SHOWN.derived == {"count", "again", "twice"}
    check(SHOWN, "test_wrong_values_are_refused_or_take_effect")


def test_no_salvage_mends_a_time_that_is_too_far() -> None:
    check(MOMENTS, "test_salvaged_files_are_sound")
