"""Shell completion of files, formats, targets, options and finding codes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from fxframework.host import Host

Items = list[CompletionItem]


def _host(ctx: click.Context) -> Host:
    from fxframework.cli.session import Session

    session = ctx.find_object(Session)
    if session is not None:
        return session.host
    from fxframework.host import default_host

    return default_host()


def _matching(words: Iterable[tuple[str, str]], incomplete: str) -> Items:
    """Return the distinct words, with their help, that begin with what was typed."""
    help_of_word = dict(words)
    return [
        CompletionItem(word, help=help_of_word[word])
        for word in sorted(help_of_word)
        if word.lower().startswith(incomplete.lower())
    ]


def files(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> Items:
    """Leave the completion of files to the shell."""
    return [CompletionItem(incomplete, type="file")]


def commands(ctx: click.Context, _param: click.Parameter, incomplete: str) -> Items:
    """Complete commands."""
    group = ctx.find_root().command
    names: list[str] = []
    if isinstance(group, click.Group):
        names = group.list_commands(ctx.find_root())
    return _matching(((name, "") for name in names), incomplete)


def formats(ctx: click.Context, _param: click.Parameter, incomplete: str) -> Items:
    """Complete formats that can be read."""
    readers = _host(ctx).readers.values()
    return _matching(((reader.format, reader.title) for reader in readers), incomplete)


def plugins(ctx: click.Context, _param: click.Parameter, incomplete: str) -> Items:
    """Complete installed plugins."""
    installed = _host(ctx).plugins()
    return _matching(((plugin.name, plugin.distribution) for plugin in installed), incomplete)


def targets(ctx: click.Context, _param: click.Parameter, incomplete: str) -> Items:
    """Complete exporters, and formats that can be written."""
    host = _host(ctx)
    words = [(exporter.name, exporter.title) for exporter in host.exporters]
    words += [(writer.format, writer.title) for writer in host.writers.values()]
    return _matching(words, incomplete)


def options(ctx: click.Context, _param: click.Parameter, incomplete: str) -> Items:
    """Complete options of readers, writers and exporters, and limits, as ``NAME=``."""
    from fxframework.registry import LIMIT_OPTIONS
    from fxframework.targets import owned_options

    host = _host(ctx)
    owned = owned_options(host.readers.values(), host.writers.values(), host.exporters)
    all_options = itertools.chain(LIMIT_OPTIONS, *(options for _, options in owned))
    return _matching(((f"{option.name}=", option.help) for option in all_options), incomplete)


def explainable(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Complete codes of findings, or else files."""
    matching_codes = _matching(
        ((rule.code, rule.title) for rule, _ in _host(ctx).rules()), incomplete or "?"
    )
    return matching_codes or files(ctx, param, incomplete)
