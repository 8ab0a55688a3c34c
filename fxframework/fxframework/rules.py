"""Rules: the findings and errors of the framework itself, by name (docs/errors.md)."""

from __future__ import annotations

from fxframework.findings import Catalogue, Rule, Severity

INFO = Severity.INFO
WARNING = Severity.WARNING
DATA_LOSS = Severity.DATA_LOSS
ERROR = Severity.ERROR

# --- Errors that stop a command ---

BUG = Rule(
    "FXF0000",
    ERROR,
    "a bug",
    rule="Whatever the input, a command ends with a result or a coded error.",
    section="docs, Errors",
    ours="The command stops with exit status 1; an existing output file stays as it is.",
    remedy="Report it with the input, or its first kilobytes, and what `-v` prints.",
)
UNREADABLE = Rule(
    "FXF0001",
    ERROR,
    "the input cannot be read",
    rule="An input is a file, a pipe or bytes that can be opened and that hold at least "
    "one sound record of the format asked for.",
    section="docs, Exit statuses",
    ours="The command stops with exit status 1; nothing is written.",
    remedy="Check the path and the format; `fxf cat --records` and `fxf convert IN "
    "OUT.jsonl` keep any bytes, as damaged records.",
)
WRITE_REFUSED = Rule(
    "FXF0002",
    ERROR,
    "the output cannot hold this",
    rule="A writer or exporter refuses values that its format cannot hold, before it "
    "writes anything.",
    section="docs, Command line",
    ours="Nothing is written; an existing file stays as it is.",
    remedy="Choose another exporter or file name; `--force` allows an existing file to be "
    "replaced.",
)
LIMIT_REACHED = Rule(
    "FXF0003",
    ERROR,
    "a limit was reached",
    rule="Limits keep memory and time in proportion to the input.",
    section="docs, Limits",
    ours="The command stops, or the finding says what was left out.",
    remedy="Raise the named limit with `-o limit=value`.",
)
STRICT = Rule(
    "FXF0004",
    ERROR,
    "stopped at the first loss",
    rule="With --strict, the first finding of data loss or worse stops the reader.",
    section="docs, Command line",
    ours="The command stops with exit status 1; nothing is written.",
    remedy="Omit --strict to keep the sound records.",
)
INVALID_REQUEST = Rule(
    "FXF0005",
    ERROR,
    "an invalid request",
    rule="Commands, options, tables, formats and exporters have the names that "
    "`fxf plugins` and `fxf --help` list.",
    section="docs, Command line",
    ours="Nothing is read or written; exit status 2.",
    remedy="See `fxf COMMAND --help`.",
)
NO_READER = Rule(
    "FXF0006",
    ERROR,
    "no reader, or more than one",
    rule="Exactly one reader must claim the input with the greatest confidence.",
    section="docs, Plugins",
    ours="Nothing is read; exit status 4.",
    remedy="Name the format with -f NAME; `fxf plugins` lists the names.",
)
MISSING_EXTRA = Rule(
    "FXF0007",
    ERROR,
    "an optional package is missing",
    rule="Some exporters and commands need a package that is not installed by default.",
    section="docs, Extras",
    ours="Nothing is written; exit status 5.",
    remedy="Run the install line that the message gives.",
)
PLUGIN_FAILED = Rule(
    "FXF0008",
    WARNING,
    "a plugin failed",
    rule="A plugin can be imported, implements only hooks that exist, and registers no "
    "name that another plugin has.",
    section="docs, Plugins",
    ours="The failed part is left out and listed; everything else works.",
    remedy="See `fxf plugins`; FXF_DISABLE_PLUGINS=NAME leaves it out silently.",
)
PLUGIN_FAULT = Rule(
    "FXF0009",
    ERROR,
    "a mistake in a plugin",
    rule="The code of a plugin raises only coded errors, and passes values that fit.",
    section="docs, Plugins",
    ours="The command stops with exit status 1; an existing output file stays as it is.",
    remedy="Report it to the author of the plugin that the message names; `-v` prints the "
    "traceback.",
)
OUTPUT_FAILED = Rule(
    "FXF0010",
    ERROR,
    "the output cannot be written",
    rule="The disk has room for the output.",
    section="docs, Command line",
    ours="The command stops with exit status 1; an existing file stays as it is.",
    remedy="Free some space, or write to another disk.",
)
TEMPORARY_FILE_FAILED = Rule(
    "FXF0011",
    ERROR,
    "a temporary file cannot be written",
    rule="The folder of temporary files has room for data that does not fit in memory.",
    section="docs, Command line",
    ours="The command stops with exit status 1; an existing output file stays as it is.",
    remedy="Free some space there, or set TMPDIR to a folder on another disk.",
)

# --- Findings about an input of any format ---

DAMAGED_STREAM = Rule(
    "FXF0101",
    DATA_LOSS,
    "the compressed stream is damaged",
    rule="A gzip or zstd input unpacks to its end with matching length and checksum.",
    section="RFC 1952, RFC 8878",
    detail="{value}",
    readers="gzip(1), zstd(1) and Perfetto stop at the damage.",
    ours="The data before the damage is read.",
    remedy="Fetch the file again; `fxf convert IN OUT` writes the recovered part.",
)
EMPTY_INPUT = Rule(
    "FXF0102",
    DATA_LOSS,
    "the input is empty",
    rule="A capture holds at least one byte.",
    section="docs, Exit statuses",
    ours="The capture is empty.",
    remedy="Check that the program that writes the file flushed or closed it.",
)
INVALID_LINE = Rule(
    "FXF0103",
    DATA_LOSS,
    "invalid line in a records file",
    rule="Each line of a .jsonl records file is one JSON object with a known `record`, "
    "after one header line.",
    section="docs, Records",
    detail="{value}",
    ours="The line is skipped; the others are read.",
    remedy="Correct or remove the line at that offset.",
)
UNLISTED_FINDINGS = Rule(
    "FXF0104",
    INFO,
    "more findings than the limit",
    rule="Each code keeps a bounded number of findings; the counts stay exact.",
    section="docs, Limits",
    ours="Further findings of that code are counted, not listed.",
    remedy="Raise `-o max_findings=N` to list more.",
)
IGNORED_OPTION = Rule(
    "FXF0105",
    WARNING,
    "option of a records file ignored",
    rule="The header of a records file sets only options about the bytes of the capture. "
    "Files, patterns and sizes come from the command line.",
    section="docs, Records",
    detail="{value}",
    ours="The option keeps its default.",
    remedy="Write the capture in its own format first (`fxf convert IN.jsonl OUT`), then "
    "give the option with -o NAME=VALUE.",
)
UNRELATED_CLOCKS = Rule(
    "FXF0106",
    WARNING,
    "clocks that cannot be related",
    rule="Captures on one timeline are aligned by a clock that both know: the time of day, "
    "the boot clock or the monotonic clock.",
    section="docs, One timeline",
    ours="Each capture keeps its own times, counted from its own 0.",
    remedy="Give `--align NAME:offset=NS`, or a moment on both clocks: `--align NAME:FROM=TO`.",
)

RULES = Catalogue.of(globals())
"""All of them, by code."""
