"""Every bundled step and device keeps its contract, in the scenario that its descriptor gives."""

from __future__ import annotations

from fxframework.host import default_host
from fxframework.testing.checkup import contracts_of, run_contract

from ..cases import cases
from ..properties import EXAMPLES

WITHOUT = {
    "capture.decode", "capture.expect", "capture.export", "golden.compare",
    "native.run", "native.thread", "inspect.replay",
    "trace.replay", "log.replay", "xray.replay",
}  # fmt: skip
"""Steps that need a file or a build: their own tests try them."""


@cases("plugin", ["emulator", "inspect", "log", "trace", "xray", "replay"])
def test_contracts_are_kept(plugin: str) -> None:
    contracts = [
        contract
        for contract in contracts_of(default_host(), plugin, examples=EXAMPLES)
        if hasattr(contract, "scenarios")
    ]
    assert contracts
    for contract in contracts:
        results = list(run_contract(contract))
        failed = [f"{one.test}: {one.message}" for one in results if one.status == "failed"]
        assert not failed, contract.name
        tried = {one.test for one in results if one.status == "ok"}
        assert ("same_bytes_twice" in tried) is (contract.name not in WITHOUT), contract.name
