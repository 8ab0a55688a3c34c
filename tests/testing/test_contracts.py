"""The contract kit itself: a sound plugin passes it, and each fault is caught by its test."""

from __future__ import annotations

import inspect
import sys
import unittest
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from fxframework.model.capture import Capture
from fxframework.testing import Contract, ExporterContract, ReaderContract, Sample, WriterContract
from fxframework.testing.contracts.generated import SEEDS, GeneratedCapture

# The contract imports the plugin by its name, as it would an installed one.
sys.path.insert(0, str(Path(__file__).parent))

import specimen

from ..cases import cases


class _OneModule(Contract):
    """All of the specimen stands in one module, so that it is not light, which is caught."""

    plugin = "specimen"
    format = "specimen"

    def test_plugin_is_light_to_import(self) -> None:
        with pytest.raises(AssertionError, match="numpy"):
            super().test_plugin_is_light_to_import()


class TestSoundReader(_OneModule, ReaderContract):
    def samples(self) -> Iterable[Sample]:
        yield Sample("five.specimen", specimen.SAMPLE)
        yield Sample("cut.specimen", specimen.SAMPLE[:-3], sound=False)


class TestSoundWriter(_OneModule, WriterContract):
    held = 1 << 15

    def samples(self) -> Iterable[Sample]:
        yield Sample("five.specimen", specimen.SAMPLE)
        yield Sample("cut.specimen", specimen.SAMPLE[:-3], sound=False)

    def records(self) -> Iterable[Mapping[str, Any]]:
        yield {"record": "magic"}
        for number in (3, 1, 2):
            yield {"record": "beat", "ts": -number, "value": number}

    def refused(self) -> Iterable[tuple[Mapping[str, Any], str]]:
        yield {"record": "beat", "ts": 1, "value": 1 << 63}, "SPC0003"


class TestWriterWithoutReader(_OneModule, WriterContract):
    """What needs a reader is skipped; all else is tried with records from scratch."""

    held = 1 << 15
    reader_plugin = "json"
    rules = specimen.rules()
    records = TestSoundWriter.records
    refused = TestSoundWriter.refused


class TestSoundExporter(_OneModule, ExporterContract):
    name = "times"

    def samples(self) -> Iterable[Sample]:
        yield Sample("five.specimen", specimen.SAMPLE)

    def check_output(self, output: bytes, capture: Capture) -> None:
        assert len(output.split()) >= len(capture.table("instants"))


class TestShortList(_OneModule, ExporterContract):
    """Of the latest times, another takes the place of one that is missing."""

    name = "latest"

    def samples(self) -> Iterable[Sample]:
        yield Sample("five.specimen", specimen.SAMPLE)


READER_FAULTS = {
    "allocates what is declared": "test_memory_follows_the_input",
    "batches lose a row": "test_batches_are_the_table",
    "batches too large": "test_batches_are_the_table",
    "close once": "test_close_may_be_called_again",
    "code beyond the pool": "test_samples_hold_together",
    "crash on odd ends": "test_truncation_keeps_the_records_before_it",
    "damage of no catalogue": "test_samples_hold_together",
    "default of another type": "test_host_takes_the_plugin",
    "explains nothing": "test_explain_covers_every_byte",
    "finds again": "test_findings_are_made_once",
    "forgets the last whole record": "test_truncation_keeps_the_records_before_it",
    "gap between records": "test_samples_hold_together",
    "JSON has bytes": "test_records_are_json",
    "offset beyond the file": "test_samples_hold_together",
    "pickles without its place": "test_records_can_be_pickled",
    "rule says nothing": "test_rules_are_complete",
    "sniff is unsure": "test_sniff_knows_its_samples",
    "sniff raises": "test_sniff_never_raises",
    "sniff takes all": "test_sniff_leaves_others_alone",
    "strict is lenient": "test_strict_stops_at_a_loss",
    "summary miscounts": "test_summary_counts_the_records",
    "tables report nothing": "test_tables_report_what_they_read",
    "thread that is not there": "test_records_rows_and_findings_agree",
    "title is a sentence": "test_descriptor_is_complete",
    "wrong dtype": "test_samples_hold_together",
}
WRITER_FAULTS = {
    "a full buffer is dropped": "test_many_records_come_back",
    "a suffix of its own": "test_suffixes_are_the_readers",
    "accepts what is not": "test_accepts_names_standard_tables",
    "changes what it is given": "test_records_are_left_as_they_were",
    "close writes again": "test_close_puts_out_what_was_held_back",
    "closes the sink": "test_bytes_reach_the_sink_in_order",
    "merge crashes on a second": "test_several_captures_are_merged_or_refused",
    "merge forgets the rows": "test_merged_files_are_readable",
    "merge forgets a row": "test_a_row_that_is_missing_is_noticed_by_merge",
    "merge keeps columns back": "test_columns_without_a_place_are_reported",
    "composes damage": "test_merged_files_are_readable",
    "crash on no field": "test_wrong_values_are_refused_or_take_effect",
    "crash on no kind": "test_what_is_no_record_is_refused",
    "crash on wrong values": "test_wrong_values_are_refused_or_take_effect",
    "extract counts nothing": "test_extract_of_everything_is_everything",
    "extract forgets a row": "test_extract_of_everything_is_everything",
    "extract is late": "test_extract_of_everything_is_everything",
    "extract of nothing is nothing": "test_extract_of_nothing_is_readable",
    "extract takes all": "test_extract_keeps_what_a_filter_keeps",
    "edits are lost": "test_wrong_values_are_refused_or_take_effect",
    "forgets the magic": "test_records_round_trip",
    "half of what it refuses": "test_refused_records_leave_nothing",
    "JSON forgets": "test_records_round_trip",
    "keeps all": "test_memory_does_not_grow_with_what_was_written",
    "loss beyond the file": "test_salvaged_files_are_sound",
    "loss without a catalogued code": "test_salvaged_files_are_sound",
    "losses in silence": "test_salvaged_files_are_sound",
    "misspelt": "test_descriptor_is_complete",
    "objects overtake JSON": "test_bytes_reach_the_sink_in_order",
    "option without help": "test_host_takes_the_plugin",
    "refuses with a mere warning": "test_what_is_no_record_is_refused",
    "refuses without a code": "test_refused_records_say_why",
    "salvage adds": "test_salvage_keeps_what_is_sound",
    "salvage keeps damage": "test_salvaged_files_are_sound",
    "sorts what it holds": "test_bytes_reach_the_sink_in_order",
    "takes bytes back": "test_bytes_reach_the_sink_in_order",
    "takes any record": "test_what_is_no_record_is_refused",
    "takes unknown fields": "test_wrong_values_are_refused_or_take_effect",
    "time is late": "test_records_from_scratch_are_read_back",
    "writer option that is not": "test_records_round_trip",
    "writer's title is a sentence": "test_descriptor_is_complete",
    "writers share": "test_writers_do_not_disturb_each_other",
    "writes when it is gone": "test_close_puts_out_what_was_held_back",
}
EXPORTER_FAULTS = {
    "batches show": "test_output_does_not_depend_on_batches",
    "crash on no rows": "test_empty_capture_is_handled",
    "never the same": "test_output_is_deterministic",
    "reports nothing lost": "test_every_sample_is_exported",
    "silent about columns": "test_unknown_columns_are_passed_on_or_reported",
    "swallows failures": "test_a_failure_leaves_nothing_behind",
    "writes at once": "test_a_file_appears_whole_or_not_at_all",
}
SHORT_LIST_FAULTS = {"counts all rows": "test_a_row_that_is_missing_is_noticed"}


FAULTS = [
    *((TestSoundReader, *pair) for pair in READER_FAULTS.items()),
    *((TestSoundWriter, *pair) for pair in WRITER_FAULTS.items()),
    *((TestSoundExporter, *pair) for pair in EXPORTER_FAULTS.items()),
    *((TestShortList, *pair) for pair in SHORT_LIST_FAULTS.items()),
]


@cases(("contract", "fault", "name"), FAULTS)
def test_fault_is_caught(contract: type[Contract], fault: str, name: str, tmp_path: Path) -> None:
    test = getattr(contract(), name)
    needed = {"tmp_path": tmp_path} if "tmp_path" in inspect.signature(test).parameters else {}
    specimen.FAULTS.add(fault)
    try:
        with pytest.raises((Exception, pytest.fail.Exception)) as caught:
            test(**needed)
    finally:
        specimen.FAULTS.clear()
    assert not isinstance(caught.value, unittest.SkipTest), caught.value
    if contract is TestSoundWriter:
        print(f"{fault}: {type(caught.value).__name__}: {caught.value}")
        assert str(caught.value), "the author is not told what is wrong"


def test_each_test_of_writers_has_a_fault() -> None:
    tests = {name for name in dir(WriterContract) if name.startswith("test_")}
    assert tests - set(dir(Contract)) <= set(WRITER_FAULTS.values())


def test_generated_counters_are_integers_and_others() -> None:
    """Else what is written of the others alone, or of integers alone, would seem not written."""
    tables = [GeneratedCapture(seed).table("counters") for seed in SEEDS]
    for table in tables:
        is_int = table["is_int"]
        assert 0 < is_int.sum() < len(table)
        assert (table["value_int"][is_int] == table["value"][is_int]).all()
        assert not table["value_int"][~is_int].any()


def test_a_contract_is_about_25_tests() -> None:
    for contract, least in ((ReaderContract, 25), (WriterContract, 25), (ExporterContract, 15)):
        tests = [name for name in dir(contract) if name.startswith("test_")]
        assert len(tests) >= least
        assert all(getattr(contract, name).__doc__ for name in tests)
