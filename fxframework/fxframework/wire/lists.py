"""Lists: of parts, of integers, and of texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fxframework.errors import PluginError
from fxframework.kit.json_fields import JsonFields, show_text
from fxframework.wire.cursor import Builder, Cursor, RefusalError, ShortError
from fxframework.wire.expressions import Expression, expression
from fxframework.wire.fields import Field, Integer, Text, Values, refusal_of_range
from fxframework.wire.state import State

__all__ = ["Listed", "Texts"]


class Listed(Field):
    """A list: of parts (``wire.Part``) or of integers; counted, or all that the record has left."""

    def __init__(self, item: Any, count: Any = None, **common: Any) -> None:
        super().__init__(**common)
        self.item = item
        self.count = None if count is None else expression(count)
        self.in_rows = False
        """Whether columns are made of the items."""
        if not isinstance(item, Integer) and not hasattr(item, "layout"):
            raise PluginError(f"a list has parts or integers, not {item!r}")
        if self.least_item() < 1:
            raise PluginError(f"an item of the list, {item!r}, may have no bytes")

    def least_item(self) -> int:
        """Return the fewest bytes of an item."""
        return int(self.item.least() if isinstance(self.item, Field) else self.item.layout.least)

    def expressions(self) -> list[Expression]:
        """Return the expressions that it depends on."""
        return super().expressions() + ([] if self.count is None else [self.count])

    def read(self, c: Cursor, values: Values) -> None:
        """Read all items."""
        found: list[Any] = []
        count = None if self.count is None else self.count.value(c.known)
        room, least = c.limit - c.at, self.least_item()
        if count is not None and not 0 <= count * least <= room:
            if isinstance(self.item, Integer):
                raise c.short(room - room % least + least)
            count = room // least + 1
        while c.at < c.limit if count is None else len(found) < count:
            if isinstance(self.item, Integer):
                at = c.at
                found.append(self.item.take(c))
                c.stretch(f"{self.name}[{len(found) - 1}]", at, str(found[-1]))
            else:
                found.append(self.item.layout.read_part(c))
                if self.in_rows and c.views is not None:
                    of_item = (
                        {each: known[each] for each in self.item.layout.fields if each in known}
                        for known in (c.known, c.spans)
                    )
                    c.items.setdefault(self, []).append((found[-1], *of_item))
        values[self.name] = tuple(found)

    def packed(self, items: Iterable[Any], state: State | None, big: bool, at: int) -> bytes:
        """Return the bytes of all items, which begin at byte ``at`` of the record."""
        b = Builder(self.name, state, big)
        b.start = -at
        for number, each in enumerate(items):
            try:
                if isinstance(self.item, Integer):
                    self._write_integer(b, each)
                else:
                    at = len(b.out)
                    self._checked(each).put(b)
                    self.item.layout.family.check(type(each), memoryview(b.out)[at:], state, big)
                    b.align(self.item.layout.family.pad)
            except RefusalError as problem:
                message = f"{self.name}[{number}]: {problem.message}"
                raise RefusalError(problem.number, message, problem.remedy) from None
        return bytes(b.out)

    def _write_integer(self, b: Builder, value: Any) -> None:
        if not isinstance(value, int) or isinstance(value, bool):
            raise RefusalError(403, f"an item must be an integer, not {value!r}")
        least, most = self.item.range
        if not least <= value <= most:
            raise refusal_of_range("an item", value, least, most)
        b.number(value, self.item.nbytes, signed=self.item.signed)

    def _checked(self, value: Any) -> Any:
        if not isinstance(value, self.item):
            raise RefusalError(403, f"an item must be a {self.item.__name__}, not {value!r}")
        return value

    def show(self, value: Any, out: dict[str, Any]) -> None:
        """Put the items into record JSON."""
        plain = isinstance(self.item, Integer)
        out[self.key] = list(value) if plain else [each.to_json() for each in value]

    def parse(self, form: JsonFields) -> Any:
        """Return the items."""
        given = form.need(self.key)
        if not isinstance(given, list | tuple):
            raise form.wrong(self.key, "a list")
        if isinstance(self.item, Integer):
            least, most = self.item.range
            for each in given:
                if type(each) is not int or not least <= each <= most:
                    raise form.wrong(self.key, f"a list of integers from {least} to {most}")
            return tuple(given)
        what = f"{form.what}: {self.key}"
        return tuple(
            self.item.layout.parse_part(each, f"{what}[{number}]", form.rules)
            for number, each in enumerate(given)
        )


class Texts(Field):
    """Texts, each behind its size; a size of zero ends them. In JSON a list of strings.

    ``many`` and ``long`` are the rules of reading and of writing for more than ``most`` texts, and
    for one over ``longest`` bytes.
    """

    def __init__(
        self,
        size: Integer,
        *,
        most: int = 0,
        longest: int = 0,
        many: tuple[int, int] = (104, 404),
        long: tuple[int, int] = (104, 404),
        **common: Any,
    ) -> None:
        super().__init__(**common)
        self.size = size
        self.most = most or 1 << 32
        self.longest = longest or size.range[1]
        self.many = many
        self.long = long
        self.text = Text(rules=self.rules)

    def least(self) -> int:
        """Return the bytes of the size that ends them."""
        return 0 if self.when is not None else self.size.nbytes

    def read(self, c: Cursor, values: Values) -> None:
        """Read all texts, and the end."""
        found: list[str] = []
        while True:
            at = c.at
            nbytes = self.size.take(c)
            c.stretch(f"{self.name}_size" if nbytes else f"end_of_{self.name}", at)
            if not nbytes:
                break
            if len(found) == self.most:
                raise ShortError(self.many[0])
            if nbytes > self.longest:
                raise ShortError(self.long[0])
            at = c.at
            found.append(self.text.seen(c, at, bytes(c.take(nbytes))))
            c.stretch(f"{self.name}[{len(found) - 1}]", at, found[-1])
        values[self.name] = tuple(found)

    def packed(self, texts: Sequence[str], state: State | None, big: bool, at: int) -> bytes:
        """Return the bytes of all texts, and of the end."""
        del at
        b = Builder(self.name, state, big)
        if len(texts) > self.most:
            raise RefusalError(self.many[1], f"{len(texts)} {self.name}; at most {self.most} fit")
        for number, each in enumerate(texts):
            self.text.name = f"{self.name}[{number}]"
            data = self.text.bytes_of(each)
            if not data:
                raise RefusalError(403, f"{self.text.name} is empty, which ends the {self.name}")
            if len(data) > self.longest:
                what = f"{self.text.name} has {len(data)} bytes; at most {self.longest} fit"
                raise RefusalError(self.long[1], what)
            b.number(len(data), self.size.nbytes)
            b.out += data
        b.number(0, self.size.nbytes)
        return bytes(b.out)

    def show(self, value: Any, out: dict[str, Any]) -> None:
        """Put the texts into record JSON, beside them the bytes of those that are not UTF-8."""
        shown: list[dict[str, Any]] = [{} for _ in value]
        for each, text in zip(shown, value, strict=True):
            show_text(each, "text", text)
        out[self.key] = [each["text"] for each in shown]
        if any(len(each) > 1 for each in shown):
            out[f"{self.key}_bytes_hex"] = [each.get("text_bytes_hex") for each in shown]

    def parse(self, form: JsonFields) -> Any:
        """Return the texts."""
        form.used.add(f"{self.key}_bytes_hex")
        given, beside = form.need(self.key), form.given.get(f"{self.key}_bytes_hex", ())
        if not isinstance(given, list | tuple) or not isinstance(beside, list | tuple):
            raise form.wrong(self.key, "a list of strings")
        texts = []
        for number, text in enumerate(given):
            one = {"text": text}
            if number < len(beside) and beside[number] is not None:
                one["text_bytes_hex"] = beside[number]
            what = f"{form.what}: {self.key}[{number}]"
            texts.append(JsonFields(what, one, form.rules).text("text"))
        return tuple(texts)
