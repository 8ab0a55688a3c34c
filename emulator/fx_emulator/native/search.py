"""What all searches of an exploration share: its coverage, its checks, and how it fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from fx_emulator.native.checks import Checks, RejectedError
from fx_emulator.native.errors import NativeError
from fx_emulator.native.execution import Execution, ExploreFailure


@attrs.define
class Coverage:
    """What a search has covered."""

    schedules: int = 0
    """Number of complete schedules."""
    states: int = 0
    """Number of states with a choice."""
    complete: bool = True
    """Whether all schedules within the bound were explored."""


class Search:
    """A way to choose the schedules of an exploration."""

    def __init__(self, execution: Execution, checks: Checks, coverage: Coverage) -> None:
        self.execution = execution
        self.checks = checks
        self.coverage = coverage

    def run(self) -> ExploreFailure | None:
        """Search. Return the failure found, or None."""
        raise NotImplementedError

    def _failure_of(
        self, step: Callable[..., ExploreFailure | None], *arguments: Any
    ) -> ExploreFailure | None:
        """Call a step of the search. Return the failure that it finds, or that ends it."""
        execution = self.execution
        try:
            return step(*arguments)
        except RejectedError as rejected:
            return execution.failure(rejected.error, image=rejected.image)
        except NativeError as error:
            execution.reveal()
            return execution.failure(error, image=execution.device.image())

    def _check_end(self) -> ExploreFailure | None:
        """Check the image at the end of a schedule."""
        self.coverage.schedules += 1
        execution = self.execution
        checks = self.checks.checks_at_end(execution.state.content)
        if not checks:
            return None
        if execution.machine.order is not None:
            # Deselected, so that the thread that runs next gets its own view of the memory again.
            execution.machine.select(None)
            execution.reveal()
        image = execution.device.image()
        error = self.checks.first_error(checks, image)
        if error is None:
            return None
        return execution.failure(error, image=image, final=True)

    def _drain_all(self) -> None:
        """Drain the store buffers of all threads."""
        order = self.execution.machine.order
        if order is not None:
            for thread in self.execution.threads:
                order.drain_all(thread.number)
