"""The contract of devices."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, ClassVar

from fxframework.kit.steps import Image, Run
from fxframework.testing.contracts.checks import check_same, deliberate, skip
from fxframework.testing.contracts.scenario import Place, ScenarioContract

__all__ = ["DeviceContract"]


class DeviceContract(ScenarioContract):
    """Contract of every device. Provide ``plugin``, ``name`` and ``scenarios()``.

    A scenario is a TOML text that declares such a device, and in which all steps succeed. Override
    ``use()`` if the scenario's steps do not write to the device.
    """

    noun: ClassVar[str] = "device"

    def use(self, device: Any, run: Run) -> None:
        """Write to an open device, after the scenario's steps; by default nothing."""

    @contextlib.contextmanager
    def _opened(self, place: Place, *, steps: bool = True) -> Iterator[tuple[Run, Any, str]]:
        """Yield the run, the device and its name, after the scenario's steps if ``steps``."""
        scenario = self._parse(place.scenario)
        name = str(place.keys[-1])
        with self._running(scenario) as run:
            device = run.devices[name]
            if steps:
                for step in scenario.steps:
                    step.kind.run(step.parameters, run)
                self.use(device, run)
            yield run, device, name

    def _image(self, run: Run, name: str, expected: bytes | None = None, what: str = "") -> bytes:
        """Return the bytes of a device; skip the test if it has none.

        If ``expected`` is given, they must be these.
        """
        device = run.devices[name]
        try:
            image = device.image() if isinstance(device, Image) else run.bytes_of(name)
        except Exception as error:
            if isinstance(device, Image) or expected is not None or not deliberate(error):
                raise
            skip(f"{self.name} has no image")
        # What others can change, such as a bytearray, would give the device away.
        assert isinstance(image, bytes), (
            f"image() of {self.name} returns {type(image).__name__}, not bytes"
        )
        if expected is not None:
            check_same(image, expected, f"the image of {self.name}, {what}")
        return image

    def test_image_is_bytes_and_stays(self) -> None:
        """Reading the device returns bytes, and does not change it."""
        for place in self._places():
            scenario = self._parse(place.scenario)
            with self._opened(place, steps=False) as (run, device, name):
                for step in scenario.steps:
                    step.kind.run(step.parameters, run)
                    self._image(run, name, self._image(run, name), "read again")
                self.use(device, run)
                self._image(run, name, self._image(run, name), "read again")

    def test_image_is_the_same_again(self) -> None:
        """A device opened and used again with the same seed has the same bytes."""
        for place in self._places():
            first_image = None
            for _ in range(2):
                with self._opened(place) as (run, _, name):
                    first_image = self._image(run, name, first_image, "opened and used again")

    def test_devices_share_nothing(self) -> None:
        """Using a device does not change another one of its kind in another run."""
        for place in self._places():
            with self._opened(place, steps=False) as (run, _, name):
                image_before = self._image(run, name)
                with self._opened(place) as (other_run, _, _):
                    self._image(other_run, name)
                    self._image(run, name, image_before, "while another one was used")

    def test_close_may_be_called_again(self) -> None:
        """A device can be closed twice, even if it was never used."""
        place = self._places()[0]
        with self._opened(place, steps=False) as (_, device, _):
            close = getattr(device, "close", None)
            if close is None:
                skip(f"{self.name} has no close()")
            for times in ("once", "twice"):
                try:
                    close()
                except Exception as error:
                    what = f"{self.name} cannot be closed {times}"
                    raise AssertionError(f"{what}: {type(error).__name__}: {error}") from error
