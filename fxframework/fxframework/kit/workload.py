"""Workloads: the actions of a scenario's threads, and the start of threads.

A format adds its own actions in a union whose members differ in their first field, and derives a
``Loop`` whose ``body`` has the type of the union. Threads run on the scenario's target
(``fxframework.model.target.Target``).
"""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import attrs

from fxframework.errors import UsageError, WriteRefusedError
from fxframework.kit.steps import Duration, Outcome, Run, parameter, table_schema
from fxframework.model.target import Target, Thread

W = TypeVar("W")
Activity = Generator[object, Any, None]
"""An action that takes time: it yields the actions of the thread."""
STEPS_PER_RECORD = 4
"""The most scheduler steps that a record takes when a capture is replayed."""


class Action(Protocol):
    """An action of a thread."""

    def do(self, stage: Any, /) -> Activity | None:
        """Do it immediately, or return a generator that takes time."""


class ActionContext(Generic[W]):
    """The context of a thread's actions: its writer, ids, random numbers and loop counters."""

    def __init__(self, writer: W, thread: Thread, rng: random.Random) -> None:
        self.writer = writer
        self.thread = thread
        self.ids = thread.ids
        self.rng = rng
        self.counts: dict[str, int] = {}
        """Current rounds of the enclosing loops, by name."""

    @classmethod
    def of_rounds(cls, counts: Mapping[str, int]) -> Self:
        """Return a context that knows rounds of loops alone, to check what depends on them."""
        context = cls.__new__(cls)
        context.counts = dict(counts)
        return context

    def text(self, text: str) -> str:
        """Replace each ``{NAME}`` in a text by the round of the loop."""
        if "{" in text:
            for name, count in self.counts.items():
                text = text.replace(f"{{{name}}}", str(count))
        return text

    def number(self, value: float | str) -> Any:
        """Return a number, or the number in a text with ``{NAME}`` replaced.

        Raises UsageError for any other text.
        """
        if not isinstance(value, str):
            return value
        text = self.text(value)
        for number_type in (int, float):
            with contextlib.suppress(ValueError):
                return number_type(text)
        loops = ", ".join(f"{{{name}}}" for name in self.counts) or "there is none"
        raise UsageError(
            f"{value!r} is not a number", remedy=f"give a number, or a loop around it: {loops}"
        )

    def value(self, value: Any) -> Any:
        """Return a value, or each of a list, in the current round; ``"{i}"`` alone is a number."""
        if isinstance(value, list):
            return [self.value(element) for element in value]
        if not isinstance(value, str):
            return value
        if value.startswith("{") and value.endswith("}"):
            round_number = self.counts.get(value[1:-1])
            if round_number is not None:
                return round_number
        return self.text(value)

    def args(self, args: Mapping[str, Argument]) -> dict[str, Any]:
        """Return arguments in the form that writers take."""
        return {self.text(name): argument.on(self) for name, argument in args.items()}

    def all(self, actions: Iterable[Action]) -> Activity:
        """Do one action after the other."""
        for action in actions:
            activity = action.do(self)
            if activity is not None:
                yield from activity

    def some_of(self, most: int) -> int:
        """Return a random integer from 0 to ``most``, determined by the seed."""
        return self.rng.randrange(most + 1) if most else 0


# --- Arguments -----------------------------------------------------------------------------------


@attrs.frozen
class ArgumentType:
    """A type of arguments: the function that makes a value, and the TOML types it accepts."""

    make: Callable[[Any], Any]
    """Makes the value that writers take."""
    of: tuple[type, ...] = (int, float, str)
    """Types of the values in TOML."""
    limits: tuple[int, int] | None = None
    """The least and the greatest value of an integer; None for other types."""

    def made(self, value: Any) -> Any:
        """Return the value that writers take. Raises ValueError for one that it cannot be."""
        if self.limits is not None:
            least, most = self.limits
            if not isinstance(value, int):
                raise ValueError(f"is {value!r}, not an integer")
            if not least <= value <= most:
                raise ValueError(f"is {value}, but must be {least} to {most}")
        return self.make(value)


_JSON: dict[type, str] = {bool: "boolean", int: "number", float: "number", str: "string"}


@attrs.frozen
class Argument:
    """A value of an argument: a TOML value, or a table with an explicit type, ``{ uint64 = 5 }``.

    A format derives a class that lists its ``types``.
    """

    types: ClassVar[Mapping[str, ArgumentType]] = {}
    """Types by the name that the table gives."""

    value: Any
    """A bool, a number or a text; in a text ``{NAME}`` is the round of a loop."""
    type: ArgumentType | None = None
    """The type that converts the value in each round of a loop; None for a constant."""

    @classmethod
    def from_toml(cls, value: Any) -> Self:
        """Return the argument for a TOML value. Raises ValueError for an invalid one."""
        if isinstance(value, bool | int | float | str):
            return cls(value)
        if isinstance(value, dict) and len(value) == 1:
            ((type_name, typed_value),) = value.items()
            type = cls.types.get(type_name)
            if type is not None and isinstance(typed_value, type.of):
                # A text with {NAME} becomes another value in each round of a loop.
                if isinstance(typed_value, str) and "{" in typed_value:
                    return cls(typed_value, type)
                return cls(type.made(typed_value))
        raise ValueError(f"is {value!r}, not a value or a table with one of {', '.join(cls.types)}")

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Return its JSON schema, for `fxf replay --schema`."""
        properties = {}
        for type_name, type in cls.types.items():
            json_types = list(dict.fromkeys(_JSON[toml_type] for toml_type in type.of))
            properties[type_name] = {"type": json_types if len(json_types) > 1 else json_types[0]}
        table = table_schema(properties) | {"minProperties": 1, "maxProperties": 1}
        return {"anyOf": [{"type": ["boolean", "number", "string"]}, table]}

    def fault(self, stage: ActionContext[Any]) -> str:
        """Return what is wrong with it in the current round of loops; empty if nothing is."""
        try:
            self.on(stage)
        except ValueError as error:
            return str(error)
        return ""

    def on(self, stage: ActionContext[Any]) -> Any:
        """Return the value in the current round of loops; ``"{i}"`` alone is the number itself."""
        if self.type is None:
            return stage.value(self.value)
        # Of a type of texts, "{i}" alone is a text too.
        is_type_of_texts = int not in self.type.of
        value = stage.text(self.value) if is_type_of_texts else stage.value(self.value)
        return self.type.made(value)


# --- Actions of every thread ---------------------------------------------------------------------


@attrs.frozen
class Work:
    """Use CPU time."""

    run: Duration = parameter(help="how much", least=0)
    jitter: Duration = parameter(
        Duration(0), help="random addition, at most; follows from the seed", least=0
    )

    def do(self, stage: ActionContext[Any]) -> Activity:
        """Use the CPU for the time and the jitter."""
        yield stage.thread.run(self.run + stage.some_of(self.jitter))


@attrs.frozen
class Sleep:
    """Block for some time."""

    sleep: Duration = parameter(help="how long", least=0)
    jitter: Duration = parameter(
        Duration(0), help="random extra time, at most; follows from the seed", least=0
    )

    def do(self, stage: ActionContext[Any]) -> Activity:
        """Block for the time and the jitter."""
        yield stage.thread.sleep(self.sleep + stage.some_of(self.jitter))


@attrs.frozen
class Migrate:
    """Go to a CPU and stay there."""

    migrate: int = parameter(help="the CPU; -1 allows all of them again", least=-1, below="cpus")

    def do(self, stage: ActionContext[Any]) -> Activity:
        """Move the thread."""
        yield stage.thread.migrate(None if self.migrate < 0 else self.migrate)


@attrs.frozen
class GiveWay:
    """Let others of the same priority go first."""

    yield_: bool = parameter(help="true")

    def do(self, stage: ActionContext[Any]) -> Activity:
        """Yield the CPU."""
        if self.yield_:
            yield stage.thread.give_way()


@attrs.frozen
class Signal:
    """Signal an event. Signals are counted: each ends one wait, now or later."""

    signal: str = parameter(help="name of the event")

    def do(self, stage: ActionContext[Any]) -> Activity:
        """Signal the event."""
        yield stage.thread.signal(stage.text(self.signal))


@attrs.frozen
class Wait:
    """Block until an event is signalled."""

    wait: str = parameter(help="name of the event")
    timeout: Duration | None = parameter(None, help="but no longer than this", least=0)

    def do(self, stage: ActionContext[Any]) -> Activity:
        """Wait for the event."""
        yield stage.thread.wait(stage.text(self.wait), self.timeout)


BODY = "what is done each time"


@attrs.frozen
class Loop:
    """Repeat actions.

    A format derives a loop whose ``body`` is a list of its actions.
    """

    loop: int = parameter(help="how often", least=0)
    body: list[Any] = parameter(help=BODY)
    """What is done each time."""
    as_: str = parameter("", help="name of the round, from 0: {NAME} in texts becomes its number")

    def do(self, stage: ActionContext[Any]) -> Activity:
        """Run the body in each round."""
        for round_number in range(self.loop):
            if self.as_:
                stage.counts[self.as_] = round_number
            yield from stage.all(self.body)
        stage.counts.pop(self.as_, None)


CommonAction = Work | Sleep | Migrate | GiveWay | Signal | Wait
"""All actions but the loop."""


# --- Threads -------------------------------------------------------------------------------------


@attrs.frozen
class ThreadParameters:
    """Parameters that every thread of a scenario has, besides its writer and its script."""

    process: str = parameter(help="name of its process, which is made if it does not exist")
    thread: str = parameter(help="its name")
    priority: int = parameter(16, help="0 to 31; those of a higher one go first", least=0, most=31)
    cpu: int | None = parameter(None, help="the only CPU that it may run on", least=0, below="cpus")
    background: bool = parameter(False, help="whether the run may end while it waits")


def start(
    given: ThreadParameters, run: Run, device: str, writer: object, script: Iterable[Action]
) -> Thread:
    """Start a thread that runs a script.

    Actions find ``writer`` as ``stage.writer``; ``device`` is the device it writes to.
    """
    # Number the threads, so that threads of one name get different random numbers.
    thread_numbers = run.shared((__name__, "threads"), itertools.count)
    rng = run.rng(f"{device}/{given.process}/{given.thread}/{next(thread_numbers)}")

    def program(thread: Thread) -> Activity:
        yield from ActionContext(writer, thread, rng).all(script)

    return target_of(run).spawn(
        given.process,
        given.thread,
        program,
        priority=given.priority,
        cpu=given.cpu,
        background=given.background,
    )


def target_of(run: Run) -> Target:
    """Return the target of a scenario. Raises UsageError if there is none."""
    target = run.target
    if not isinstance(target, Target):
        raise UsageError(
            "there is no target", remedy="install the plugin that has a device kind 'target'"
        )
    return target


# --- Replaying captures --------------------------------------------------------------------------


@attrs.frozen
class ReplayParameters:
    """Parameters that every replay of a capture has.

    A format adds one for a device that the records go to instead of an output, named ``instead``.
    """

    instead: ClassVar[str]

    capture: str = parameter(help="the capture, a file beside the scenario", refers="file")
    as_: str = parameter(
        "", help="the output: what the target makes of the capture", makes="output"
    )

    def __attrs_post_init__(self) -> None:
        """Raise ValueError unless either the output or the device is given."""
        if bool(self.as_) == bool(getattr(self, self.instead)):
            raise ValueError(f"give either `as` or `{self.instead}`")


class Timed(Protocol):
    """An item of a capture with a time."""

    @property
    def ns(self) -> int | None:
        """When it was written, in nanoseconds; None if unknown or irrelevant."""
        ...


T = TypeVar("T", bound=Timed)


def replay(run: Run, items: Sequence[T], write: Callable[[T], bool]) -> dict[str, int]:
    """Write each item on a thread of the target at the item's time; the first one now.

    Returns the number of ``records`` written, ``dropped`` (``write`` returned False) and
    ``refused`` (``write`` raised WriteRefusedError).
    """
    counts = {"records": 0, "dropped": 0, "refused": 0}

    def program(thread: Thread) -> Activity:
        offset = None  # from the capture's time to the target's
        for item in items:
            if item.ns is not None:
                now = thread.clock.monotonic_ns()
                if offset is None:
                    offset = now - item.ns
                time_left = item.ns + offset - now
                if time_left > 0:
                    yield thread.sleep(time_left)
            try:
                is_written = write(item)
            except WriteRefusedError:
                counts["refused"] += 1
            else:
                counts["records" if is_written else "dropped"] += 1

    target = target_of(run)
    target.spawn("replay", "replay", program, background=True)
    target.run(budget=max(1_000_000, STEPS_PER_RECORD * len(items)))
    if sum(counts.values()) < len(items):
        raise UsageError("the target stopped before the capture was written")
    return counts


def counted(counts: Mapping[str, int]) -> Outcome:
    """Return an outcome with these counts."""
    message = ", ".join(f"{count:,} {noun}" for noun, count in counts.items() if count)
    return Outcome.ok(message, **counts)
