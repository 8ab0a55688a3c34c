"""The contract kit itself: a sound plugin passes it, and each fault is caught by its test."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from fxframework.model.capture import Capture
from fxframework.testing import Contract, ExporterContract, ReaderContract, Sample

# The contract imports the plugin by its name, as it would an installed one.
sys.path.insert(0, str(Path(__file__).parent))

import specimen


class _OneModule(Contract):
    """All of the specimen stands in one module, so that it is not light, which is caught."""

    plugin = "specimen"
    format = "specimen"
    examples = 30

    def test_plugin_is_light_to_import(self) -> None:
        with pytest.raises(AssertionError, match="numpy"):
            super().test_plugin_is_light_to_import()


class TestSoundReader(_OneModule, ReaderContract):
    def samples(self) -> Iterable[Sample]:
        yield Sample("five.specimen", specimen.SAMPLE)
        yield Sample("cut.specimen", specimen.SAMPLE[:-3], sound=False)


class TestSoundExporter(_OneModule, ExporterContract):
    name = "times"

    def samples(self) -> Iterable[Sample]:
        yield Sample("five.specimen", specimen.SAMPLE)

    def check_output(self, output: bytes, capture: Capture) -> None:
        assert len(output.split()) >= len(capture.table("instants"))


READER_FAULTS = {
    "allocates what is declared": "test_memory_follows_the_input",
    "batches lose a row": "test_batches_are_the_table",
    "batches too large": "test_batches_are_the_table",
    "close once": "test_close_may_be_called_again",
    "code beyond the pool": "test_tables_match_their_schemas",
    "crash on odd ends": "test_truncation_keeps_the_records_before_it",
    "default of another type": "test_options_are_documented",
    "explains nothing": "test_explain_covers_every_byte",
    "finds again": "test_findings_are_made_once",
    "forgets the last whole record": "test_truncation_keeps_the_records_before_it",
    "gap between records": "test_records_cover_the_file",
    "JSON forgets": "test_damaged_records_round_trip",
    "JSON has bytes": "test_records_are_json",
    "offset beyond the file": "test_findings_are_catalogued_and_placed",
    "rule says nothing": "test_rules_are_complete",
    "sniff is unsure": "test_sniff_knows_its_samples",
    "sniff raises": "test_sniff_never_raises",
    "sniff takes all": "test_sniff_leaves_others_alone",
    "strict is lenient": "test_strict_stops_at_a_loss",
    "summary miscounts": "test_summary_counts_the_records",
    "thread that is not there": "test_references_between_tables_hold",
    "title is a sentence": "test_descriptor_is_complete",
    "wrong dtype": "test_tables_match_their_schemas",
}
EXPORTER_FAULTS = {
    "batches show": "test_output_does_not_depend_on_batches",
    "crash on no rows": "test_empty_capture_is_handled",
    "never the same": "test_output_is_deterministic",
    "reports nothing lost": "test_drops_are_reported_by_name",
    "silent about columns": "test_unknown_columns_are_passed_on_or_reported",
    "swallows failures": "test_a_failure_leaves_nothing_behind",
    "writes at once": "test_a_file_appears_whole_or_not_at_all",
}


@pytest.fixture(params=[*READER_FAULTS, *EXPORTER_FAULTS])
def fault(request: pytest.FixtureRequest) -> Iterator[str]:
    specimen.FAULTS.add(request.param)
    yield request.param
    specimen.FAULTS.clear()


def test_fault_is_caught(fault: str, tmp_path: Path) -> None:
    contract = TestSoundReader() if fault in READER_FAULTS else TestSoundExporter()
    name = {**READER_FAULTS, **EXPORTER_FAULTS}[fault]
    test = getattr(contract, name)
    needed = {"tmp_path": tmp_path} if "tmp_path" in inspect.signature(test).parameters else {}
    with pytest.raises((Exception, pytest.fail.Exception)):
        test(**needed)


def test_a_contract_is_about_25_tests() -> None:
    for contract, least in ((ReaderContract, 25), (ExporterContract, 15)):
        tests = [name for name in dir(contract) if name.startswith("test_")]
        assert len(tests) >= least
        assert all(getattr(contract, name).__doc__ for name in tests)
