"""The exporter `json`: a LogsData object for each log, as `ffx log --machine json` prints it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from fx_log.export.lines import VERBOSITY, LineExport, Lines, Member, Members
from fx_log.export.presentation import Batch, Forms, Head, Texts, shown_values, unquoted
from fx_log.format import UNKNOWN_COMPONENT
from fx_log.severity import LEVELS
from fxframework.kit.export import quoted
from fxframework.kit.json_fields import special_double
from fxframework.kit.memo import Memo
from fxframework.model.capture import Capture
from fxframework.model.table import Table

SAME_NAME: Final = "arguments of a name that another of the same log has"


class JsonExport(LineExport):
    """Writes a LogsData object for each log, as `ffx log --machine json` does."""

    def _lines(self, capture: Capture) -> Lines:
        return _Objects(capture, self._options, self._dropped)


class _Objects:
    """Renders logs as objects, each on a line."""

    def __init__(self, capture: Capture, options: Mapping[str, Any], dropped: Counter[str]) -> None:
        self._dropped = dropped
        self._texts = Texts(capture.strings, dropped)
        self._strings = self._texts.pooled(quoted)
        self._names_of_specials = options["non_finite"] == "strings"
        before = '{"data":{"TargetLog":' if options["wrap"] else ""
        after = "}}" if options["wrap"] else ""
        self._heads: Memo[tuple[Any, ...], tuple[str, str, bool]] = Memo(
            _HeadJson(self._strings, self._texts, before)
        )
        self._end = f'}}}},"version":1}}{after}\n'
        self._forms = Forms(
            string=self._strings,
            integer=str,
            double=self._double,
            data=lambda data: f'"{data.hex()}"',
            true="true",
            false="false",
            null="null",
        )

    def _double(self, value: float) -> str:
        special = special_double(value)
        if special:
            return f'"{special}"' if self._names_of_specials else "null"
        return repr(value)

    def arguments(self, args: Table) -> list[Member]:
        """Return the members that arguments become."""
        keys = [self._strings[code] for code in args.array("name").tolist()]
        values = shown_values(args, self._forms)
        members = zip(keys, values, strict=True)
        return [(key, f"{key}:{value}") for key, value in members]

    def of(self, batch: Batch[Member]) -> Iterator[str]:
        """Yield the line of each row."""
        messages = batch.messages.shown(unquoted, self._texts, special='"\\')
        for ns, head_key, message, args, dropped_logs, rolled_out, verbosity in batch.rows(
            batch.ts.tolist(), messages
        ):
            metadata, payload, has_message = self._heads[head_key]
            errors = _errors(dropped_logs, rolled_out) if dropped_logs or rolled_out else ""
            if verbosity:
                args = [(f'"{VERBOSITY}"', f'"{VERBOSITY}":{verbosity}'), *args]
            keys = f'"keys":{{{self._joined(args)}}},' if args else ""
            value = f'"value":"{message}"' if has_message else ""
            yield f'{metadata}{ns}{errors}{payload}{keys}"message":{{{value}}}{self._end}'

    def _joined(self, args: Members) -> str:
        """Join members sorted by name; of members with the same name, the first is kept."""
        if len(args) == 1:
            return args[0][1]
        members = dict(reversed(args))
        self._dropped[SAME_NAME] += len(args) - len(members)
        # Sorted by text, not by JSON, where escapes would change the order.
        return ",".join([members[name] for name in sorted(members, key=orjson.loads)])


def _errors(dropped: int, rolled_out: int) -> str:
    counts = (("dropped_logs", dropped), ("rolled_out_logs", rolled_out))
    errors = [f'{{"{error_name}":{{"count":{count}}}}}' for error_name, count in counts if count]
    return f',"errors":[{",".join(errors)}]'


class _HeadJson:
    """Renders a head: the text before the time, the text after it, and if there is a message."""

    def __init__(self, strings: Mapping[int, str], texts: Texts, before: str) -> None:
        self._strings = strings
        self._tags = texts.tags(quoted)
        self._before = before

    def __call__(self, key: tuple[Any, ...]) -> tuple[str, str, bool]:
        head = Head.of(key)
        level = LEVELS[head.severity]
        members = [f'"severity":"{level.name}"']
        if head.severity != level:
            members.append(f'"raw_severity":{head.severity}')
        if head.url >= 0:
            members.append(f'"component_url":{self._strings[head.url]}')
        tags = ",".join(self._tags[tag] for tag in head.tags)
        members.append(f'"tags":[{tags}]')
        if head.pid is not None:
            members.append(f'"pid":{head.pid}')
        if head.tid is not None:
            members.append(f'"tid":{head.tid}')
        if head.file >= 0:
            members.append(f'"file":{self._strings[head.file]}')
        if head.line is not None:
            members.append(f'"line":{head.line}')
        moniker = self._strings[head.component]
        if head.component < 0:  # readers of this format require one
            moniker = quoted(UNKNOWN_COMPONENT)
        metadata = (
            f'{self._before}{{"data_source":"Logs","metadata":{{{",".join(members)},"timestamp":'
        )
        payload = f'}},"moniker":{moniker},"payload":{{"root":{{'
        return metadata, payload, head.has_message
