"""Host: loads the installed plugins and opens inputs. A typed façade over pluggy.

Plugins, including the bundled ones, are found through the entry-point group ``fxframework``. A
plugin that fails is listed and left out; the others work. Three environment variables select
plugins:

``FXF_DISABLE_PLUGINS=a,b``
    disables the plugins of these names.
``FXF_PLUGINS=a,b``
    loads only the installed plugins of these names; none if it is empty.
``FXF_PLUGIN_PATH=/home/me/a.py``
    loads files as plugins (``fxframework.plugin_files``), after the installed ones.
"""

from __future__ import annotations

import functools
import itertools
import os
import re
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import Distribution, EntryPoint, entry_points
from mmap import mmap
from pathlib import Path
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any, TypeVar

import attrs
import pluggy

from fxframework import detect, hookspecs, plugin_files, rules
from fxframework.admission import descriptor_faults, unmet_requirement
from fxframework.containment import contained, in_time
from fxframework.errors import (
    FxError,
    PluginError,
    Rule,
    UnreadableError,
    UsageError,
    WriteRefusedError,
    checked_type,
    did_you_mean,
    look_up,
    one_line,
)
from fxframework.hookspecs import API, PROJECT
from fxframework.io.budget import Budget
from fxframework.io.limits import Limits
from fxframework.model import turns
from fxframework.registry import (
    HEAD,
    LIMIT_OPTIONS,
    DeviceKind,
    Exporter,
    Probe,
    Reader,
    StepKind,
    Writer,
    parse_options,
)

if TYPE_CHECKING:
    import click

    from fxframework.io.sink import Sink
    from fxframework.io.source import Progress, Source
    from fxframework.model.capture import Capture
    from fxframework.model.diagnostics import Diagnostic

T = TypeVar("T")
CALLERS = frozenset({__name__, "fxframework.registry"})
"""The modules that call a plugin's functions: a TypeError there is about the call itself."""
GROUP = PROJECT
"""The entry-point group."""
Input = str | os.PathLike[str] | bytes | bytearray | memoryview | mmap | IO[bytes]
"""An input: a path, ``-``, a URI, bytes, or a file that is open in binary mode."""


@attrs.frozen(kw_only=True)
class PluginFailure:
    """A plugin, or a part of one, that was left out, and the reason."""

    plugin: str
    distribution: str
    error: str


@attrs.define(kw_only=True)
class Plugin:
    """A plugin and what it registered."""

    name: str
    distribution: str
    """The distribution that installed it, or the path of its file."""
    version: str
    status: str = "loaded"
    """``loaded``, ``partial`` (a part failed), ``failed`` or ``disabled``."""
    registers: dict[str, list[str]] = attrs.field(factory=dict)
    """Names by kind: ``readers``, ``writers``, ``exporters``, ``steps``, ``devices``,
    ``commands``."""
    observes: list[str] = attrs.field(factory=list)
    """The hooks that it implements, other than registration."""
    package: str = ""
    """The top-level package of its hooks; may be empty."""

    @property
    def origin(self) -> str:
        """Its name and distribution, for messages."""
        return f"{self.name} ({self.distribution})"


@attrs.frozen
class _Kind:
    """A kind of descriptor, which plugins return from a hook of its own."""

    hook: str
    noun: str
    """The word for one descriptor, for messages."""
    plural: str
    """Its key in ``Plugin.registers``."""
    type: type
    name: Callable[[Any], str]
    """Returns the name of a descriptor."""


_KINDS = (
    _Kind("fx_readers", "reader", "readers", Reader, lambda reader: reader.format),
    _Kind("fx_writers", "writer", "writers", Writer, lambda writer: writer.format),
    _Kind("fx_exporters", "exporter", "exporters", Exporter, lambda exporter: exporter.name),
    _Kind("fx_step_kinds", "step kind", "steps", StepKind, lambda step: step.name),
    _Kind("fx_devices", "device kind", "devices", DeviceKind, lambda device: device.name),
)


class Host:
    """The plugins, their registrations, and their failures.

    ``Host()`` loads the installed plugins; ``Host(discover=False)`` is empty, for tests and for
    programs that ``register()`` plugins themselves.
    """

    def __init__(self, *, discover: bool = True, environ: Mapping[str, str] | None = None) -> None:
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(hookspecs)
        self._plugins: dict[str, Plugin] = {}
        self._failures: list[PluginFailure] = []
        self._items: dict[str, list[tuple[Any, Plugin]]] = {kind.plural: [] for kind in _KINDS}
        """The descriptors with their plugins, by ``_Kind.plural``."""
        self._silenced: set[tuple[str, str]] = set()
        """Plugin and hook of each observer that raised."""
        if discover:
            self._discover(os.environ if environ is None else environ)

    # --- Plugins ---

    def plugins(self) -> list[Plugin]:
        """Return all plugins in loading order, with their registrations."""
        return list(self._plugins.values())

    def packages(self) -> set[str]:
        """Return the top-level packages of the loaded plugins."""
        return {plugin.package for plugin in self.plugins() if plugin.status != "disabled"} - {""}

    @property
    def failures(self) -> tuple[PluginFailure, ...]:
        """The plugins and parts of plugins that were left out so far, and the reasons."""
        return tuple(self._failures)

    def register(
        self, plugin: object, *, name: str, distribution: str = "none", version: str = ""
    ) -> Plugin:
        """Register a module or object whose functions are decorated with ``@hookimpl``.

        Does not raise for faults of the plugin: see ``failures`` and the status of the returned
        Plugin.
        """
        module = plugin.__name__ if isinstance(plugin, ModuleType) else type(plugin).__module__
        package = module.partition(".")[0]
        listed = Plugin(name=name, distribution=distribution, version=version, package=package)
        if not self._admit(listed):
            return listed
        wanted_api = getattr(plugin, "FXFRAMEWORK_API", API)
        if wanted_api != API:
            self._fail(
                listed,
                f"it is built for version {wanted_api!r} of the plugin API, and this fxframework "
                f"has version {API}: install a release of {distribution} for version {API}, or "
                "another release of fxframework",
                fatal=True,
            )
            return listed
        try:
            with contained():
                self._manager.register(plugin, name=name)
        except Exception as error:  # noqa: BLE001 (of several types; all are listed)
            self._manager.unregister(name=name)
            self._fail(listed, one_line(error), fatal=True)
            return listed
        hooks = self._check_hooks(plugin, listed)
        for kind in _KINDS:
            if kind.hook in hooks:
                self._collect(kind, plugin, listed)
        registration_hooks = {kind.hook for kind in _KINDS}
        listed.observes = [hook for hook in hooks if hook not in registration_hooks]
        return listed

    def load(self, path: str) -> Plugin:
        """Load a file, given by its absolute path, as a plugin with the name of the file.

        Does not raise for faults of the plugin: see ``register``.
        """
        listed = Plugin(name=Path(path).stem, distribution=path, version="")
        if listed.name in self._plugins:
            self._admit(listed)  # lists that the name is taken
            return listed
        return self._import(listed, lambda: in_time(lambda: plugin_files.load(path)))

    def _import(self, listed: Plugin, load: Callable[[], object]) -> Plugin:
        """Import and register a plugin; list it as failed if it cannot be imported."""
        try:
            with contained():
                plugin = load()
        except Exception as error:  # noqa: BLE001 (code of plugins; listed)
            if self._admit(listed):
                message = f"cannot be imported: {one_line(error)}"
                if isinstance(error, FxError) and error.remedy:
                    message += f"; {error.remedy}"
                self._fail(listed, message, fatal=True)
            return listed
        return self.register(
            plugin, name=listed.name, distribution=listed.distribution, version=listed.version
        )

    def modules(self) -> dict[str, str]:
        """Return the module of each registered plugin, by the plugin's name."""
        return {
            name: getattr(plugin, "__name__", type(plugin).__module__)
            for name, plugin in self._manager.list_name_plugin()
            if plugin is not None
        }

    def implementation(self, name: str) -> object | None:
        """Return the module or object of a plugin's hooks; None if it was left out."""
        implementation: object | None = self._manager.get_plugin(name)
        return implementation

    def _admit(self, plugin: Plugin) -> bool:
        """Add a plugin, unless its name is taken; return whether it was added."""
        namesake = self._plugins.get(plugin.name)
        if namesake is None:
            self._plugins[plugin.name] = plugin
            return True
        self._fail(
            plugin,
            f"{namesake.distribution} already has a plugin of this name; "
            f"that of {plugin.distribution} is left out",
            fatal=True,
        )
        self._plugins[f"{plugin.name} ({plugin.distribution})"] = plugin
        return False

    def _fail(self, plugin: Plugin, error: str, *, fatal: bool = False) -> None:
        """List a fault of a plugin, of which nothing is used if it is fatal."""
        self._failures.append(
            PluginFailure(plugin=plugin.name, distribution=plugin.distribution, error=error)
        )
        if plugin.status != "failed":
            plugin.status = "failed" if fatal else "partial"

    def _check_hooks(self, plugin: object, listed: Plugin) -> list[str]:
        """Return the hooks that a plugin implements; unknown hooks are listed as failures."""
        implemented_hooks: list[str] = []
        specified_hooks = [name for name in vars(hookspecs) if name.startswith("fx_")]
        for caller in self._manager.get_hookcallers(plugin) or []:
            if caller.has_spec():
                implemented_hooks.append(caller.name)
                continue
            # A misspelt hook, unless the plugin says that the host need not know it.
            own_implementations = [impl for impl in caller.get_hookimpls() if impl.plugin is plugin]
            if not all(impl.optionalhook for impl in own_implementations):
                suggestion = did_you_mean(caller.name, specified_hooks)
                self._fail(listed, f"there is no hook {caller.name!r}{suggestion}")
        if not implemented_hooks:
            if listed.status == "loaded":
                self._fail(listed, "implements no hook; is @hookimpl missing?")
            listed.status = "failed"
        return sorted(implemented_hooks)

    def _caller(self, hook: str, plugin: object) -> Callable[..., list[Any]]:
        """Return a function that calls one plugin's implementations of a hook."""
        others = [other for other in self._manager.get_plugins() if other is not plugin]
        return self._manager.subset_hook_caller(hook, remove_plugins=others)

    def _call(self, hook: str, plugin: object, **arguments: Any) -> list[Any]:
        """Call one plugin's implementations of a hook."""
        caller = self._caller(hook, plugin)
        with contained():
            return caller(**arguments)

    def _collect(self, kind: _Kind, plugin: object, listed: Plugin) -> None:
        """Register the descriptors that a plugin returns from a hook."""
        caller = self._caller(kind.hook, plugin)
        try:
            with contained():
                results = in_time(lambda: [_listed(kind, result) for result in caller()])
        except Exception as error:  # noqa: BLE001 (code of plugins; listed)
            self._fail(listed, f"{kind.hook} failed: {one_line(error)}")
            return
        if not results:  # pluggy leaves out results that are None
            self._fail(
                listed,
                f"{kind.hook} returned nothing (None): return a descriptor or a list, [] for none",
            )
        for item in itertools.chain(*results):
            fault = self._fault_of_item(kind, item, listed)
            if fault:
                self._fail(listed, fault)
            else:
                self._items[kind.plural].append((item, listed))
                listed.registers.setdefault(kind.plural, []).append(kind.name(item))

    def _fault_of_item(self, kind: _Kind, item: Any, listed: Plugin) -> str:
        """Return why what a plugin returned from a hook is left out; "" if it is registered."""
        if not isinstance(item, kind.type):
            return f"{kind.hook} returned {item!r}, not a {kind.type.__name__}"
        name = kind.name(item)
        faults = descriptor_faults(item)
        if faults:
            return f"{kind.noun} {name!r} is left out: {'; '.join(faults)}"
        for registered_item, owner in self._items[kind.plural]:
            if _collide(kind, registered_item, item):
                return (
                    f"{kind.noun} {name!r} is already registered by {owner.origin}; "
                    f"that of {listed.origin} is left out"
                )
        return ""

    def _discover(self, environ: Mapping[str, str]) -> None:
        """Load the installed plugins, then the plugin files, as the variables select them."""
        disabled_names = _names(environ.get("FXF_DISABLE_PLUGINS", ""))
        allowed_names = _names(environ["FXF_PLUGINS"]) if "FXF_PLUGINS" in environ else None
        available_names = []
        for installed in _installed():
            name = installed.entry.name
            available_names.append(name)
            is_allowed = allowed_names is None or name in allowed_names
            if is_allowed and name not in disabled_names:
                self._load_installed(installed)
            else:
                self._disable(name, installed.distribution, installed.version)
        for path in plugin_files.listed(environ):
            name = Path(path).stem
            available_names.append(name)
            if name not in disabled_names:
                self.load(path)
            else:
                self._disable(name, path, "")
        self._check_names("FXF_DISABLE_PLUGINS", disabled_names, available_names)
        self._check_names("FXF_PLUGINS", allowed_names or set(), available_names)

    def _load_installed(self, installed: _Installed) -> None:
        """Load a plugin of a distribution, and check which fxframework that requires."""
        from fxframework import __version__

        distribution = installed.distribution
        listed = Plugin(
            name=installed.entry.name, distribution=distribution, version=installed.version
        )
        listed = self._import(listed, installed.entry.load)
        unmet = unmet_requirement(installed.requirements, PROJECT, __version__)
        if unmet and listed.status != "failed":
            self._fail(
                listed,
                f"{distribution} requires {unmet}, and this is {__version__}: "
                f"install the fxframework it requires, or another release of {distribution}",
            )

    def _disable(self, name: str, distribution: str, version: str) -> None:
        """List a plugin that the environment excludes."""
        listed = Plugin(name=name, distribution=distribution, version=version)
        if self._admit(listed):
            listed.status = "disabled"

    def _check_names(self, variable: str, names: set[str], available_names: list[str]) -> None:
        """List the names in a variable that no plugin has."""
        for name in sorted(names.difference(available_names)):
            self._failures.append(
                PluginFailure(
                    plugin=name,
                    distribution="none",
                    error=f"{variable} names it, but no such plugin is installed"
                    f"{did_you_mean(name, available_names)}",
                )
            )

    # --- Registrations ---

    def _registered(self, plural: str) -> list[Any]:
        return [item for item, _ in self._items[plural]]

    @property
    def readers(self) -> Mapping[str, Reader]:
        """Readers by format."""
        return {reader.format: reader for reader in self._registered("readers")}

    @property
    def writers(self) -> Mapping[str, Writer]:
        """Writers by format."""
        return {writer.format: writer for writer in self._registered("writers")}

    @property
    def exporters(self) -> tuple[Exporter, ...]:
        """All exporters; several may have the same name, for different formats."""
        return tuple(self._registered("exporters"))

    @property
    def step_kinds(self) -> Mapping[str, StepKind]:
        """Step kinds by name."""
        return {kind.name: kind for kind in self._registered("steps")}

    @property
    def devices(self) -> Mapping[str, DeviceKind]:
        """Device kinds by name."""
        return {kind.name: kind for kind in self._registered("devices")}

    def reader(self, format: str) -> Reader:
        """Return the reader of a format. Raises UsageError for an unknown format."""
        return look_up(self.readers, format, "reader")

    def writer(self, format: str) -> Writer:
        """Return the writer of a format. Raises UsageError for an unknown format."""
        return look_up(self.writers, format, "writer")

    def exporter(self, name: str, *, format: str, tables: Iterable[str]) -> Exporter:
        """Return the exporter of that name for a capture, preferably one made for its format.

        Raises UsageError for an unknown name, and for a capture that the exporter does not take.
        """
        suitable_exporters = self.exporters_for(format, tables)
        for exporter in suitable_exporters:
            if exporter.name == name:
                return exporter
        suitable_names = sorted({exporter.name for exporter in suitable_exporters})
        choices = ", ".join(suitable_names) or "none"
        all_names = {exporter.name for exporter in self.exporters}
        if name in all_names:
            raise UsageError(
                f"exporter {name!r} does not take {format} captures",
                remedy=f"for this one there are: {choices}",
            )
        raise UsageError(
            f"no exporter {name!r}{did_you_mean(name, all_names)}",
            remedy=f"for {format} captures there are: {choices}",
        )

    def exporters_for(self, format: str, tables: Iterable[str]) -> list[Exporter]:
        """Return the exporters that take a capture, those made for its format first."""
        tables = tuple(tables)
        suitable = [exporter for exporter in self.exporters if exporter.takes(format, tables)]
        return sorted(suitable, key=lambda exporter: not isinstance(exporter.accepts, str))

    def owner(self, item: Reader | Writer | Exporter | StepKind | DeviceKind) -> Plugin:
        """Return the plugin that registered a descriptor. Raises KeyError if none did."""
        for items_with_plugins in self._items.values():
            for registered_item, plugin in items_with_plugins:
                if registered_item is item:
                    return plugin
        raise KeyError(item)

    def left_out(self, item: StepKind | DeviceKind, error: str) -> None:
        """List a failure of a descriptor that is left out, while others of its plugin are used."""
        self._fail_once(self.owner(item), error)

    def called(
        self, item: Reader | Writer | Exporter, function: Callable[..., Any], *arguments: Any
    ) -> Any:
        """Call a function of a descriptor. Raises PluginError if it does not take the arguments."""
        try:
            return function(*arguments)
        except TypeError as error:
            innermost_frame, _ = [*traceback.walk_tb(error.__traceback__)][-1]
            if innermost_frame.f_globals["__name__"] not in CALLERS:
                raise
            raise self.faulty(
                item, f"a function is called with {len(arguments)} arguments, but {error}"
            ) from error

    def faulty(self, item: Reader | Writer | Exporter, fault: str) -> PluginError:
        """Return the error for a fault of a descriptor, which names its plugin."""
        name = item.name if isinstance(item, Exporter) else item.format
        try:
            plugin = self.owner(item)
        except KeyError:
            return PluginError(f"{name}: {fault}", remedy="report it to its author")
        return PluginError(
            f"{name} of the plugin {plugin.origin}: {fault}",
            remedy=f"report it to the author of {plugin.distribution}",
        )

    def blame(self, error: BaseException) -> PluginError | None:
        """Return an error that blames the plugin that raised an exception; None for our own bugs.

        The innermost frame of the traceback that belongs to a plugin or to fxframework decides.
        Bundled plugins count as fxframework; modules beside a file that is a plugin count as it.
        """
        plugins_by_package = {
            module.partition(".")[0]: self._plugins[name] for name, module in self.modules().items()
        }
        plugins_by_folder = {
            os.path.dirname(plugin.distribution): plugin  # noqa: PTH120 (also of no path)
            for package, plugin in plugins_by_package.items()
            if package.startswith(plugin_files.PREFIX)
        }
        plugin: Plugin | None = None
        place = ""
        # From the outermost frame inwards, so that the innermost one decides.
        for frame, line in traceback.walk_tb(error.__traceback__):
            module = str(frame.f_globals.get("__name__", ""))
            package = module.partition(".")[0]
            if module == turns.__name__:  # between a plugin and its caller
                continue
            if package == PROJECT:
                plugin = None
                continue
            owner = plugins_by_package.get(package)
            if owner is None and plugins_by_folder:
                owner = plugins_by_folder.get(plugin_files.folder_of(package))
            if owner is not None:
                plugin = owner
                place = f"{module}, line {line}"
        if plugin is None or plugin.distribution == PROJECT:
            return None
        return PluginError(
            f"{one_line(error)}, raised by the plugin {plugin.origin} in {place}",
            remedy=f"report it to the author of {plugin.distribution}; -v prints the traceback",
        )

    def rules(self) -> Iterator[tuple[Rule, str]]:
        """Yield all rules of all catalogues with their format (``fxframework`` for our own)."""
        for rule in rules.RULES.values():
            yield rule, PROJECT
        for reader, plugin in self._items["readers"]:
            if reader.rules is None:
                continue
            try:
                catalogue = list(reader.rules().values())
            except Exception as error:  # noqa: BLE001 (code of plugins; listed)
                self._fail(plugin, f"the rule catalogue cannot be loaded: {one_line(error)}")
                continue
            for rule in catalogue:
                yield rule, reader.format

    def rule(self, code: str) -> tuple[Rule, str]:
        """Return the rule of a code (in any case) and its format. Raises UsageError if unknown."""
        rules: dict[str, tuple[Rule, str]] = {}
        for rule, format in self.rules():
            rules.setdefault(rule.code, (rule, format))  # formats may share a catalogue
        try:
            return rules[code.upper()]
        except KeyError:
            raise UsageError(
                f"unknown code {code!r}{did_you_mean(code.upper(), rules)}",
                remedy="`fxf verify` shows the codes of its findings",
            ) from None

    # --- Opening ---

    def open(
        self,
        what: Input | Source,
        *,
        format: str | None = None,
        strict: bool = False,
        options: Mapping[str, Any] | None = None,
        others: bool = False,
        budget: Budget | None = None,
        progress: Progress | None = None,
    ) -> Capture:
        """Open an input as a capture.

        ``format`` names the reader, which is otherwise detected from the first bytes and the name.
        ``options`` are the reader's and the limits, as text or typed; with ``others``, options
        that the reader does not have are ignored. ``strict`` makes the first loss a StrictError.
        ``budget`` is passed to ``read``. ``progress`` is called while bytes are fetched.

        Raises UnreadableError if the input cannot be opened, NoReaderError if no reader or more
        than one claims it, UsageError for unknown formats and options, LimitError.
        """
        checked_type(strict, bool, "strict", "True or False")
        options = dict(options or {})
        # An unknown format is refused before the input is fetched.
        reader = None if format is None else self.reader(format)
        source = self.source(what, options=options, progress=progress)
        try:
            if reader is None:
                reader = self.detect(source)
            if others:
                reader_options = {option.name for option in (*reader.options, *LIMIT_OPTIONS)}
                options = {name: value for name, value in options.items() if name in reader_options}
            return self.read(source, reader, strict=strict, options=options, budget=budget)
        except BaseException:
            source.close()
            raise

    def source(
        self,
        what: Input | Source,
        *,
        options: Mapping[str, Any] | None = None,
        progress: Progress | None = None,
    ) -> Source:
        """Return the bytes of an input; a name with ``://`` is opened by a plugin or fsspec.

        Of ``options``, only the limits are used. Raises UnreadableError and LimitError.
        """
        from fxframework.io.source import Source

        if isinstance(what, Source):
            return what
        if isinstance(what, str) and "://" in what:
            source = self._open_by_plugin("fx_open_source", what, Source, UnreadableError)
            if source is not None:
                return source
            if not Path(what).exists():
                from fxframework.io.remote import open_source

                return open_source(what, limits=limits_of(options or {}), progress=progress)
        return Source.open(what, limits=limits_of(options or {}), progress=progress)

    def _open_by_plugin(
        self, hook: str, uri: str, result_type: type[T], refusal: type[FxError]
    ) -> T | None:
        """Return what a plugin opens for an address; None if no plugin does."""
        try:
            result = getattr(self._manager.hook, hook)(uri=uri)
        except FxError:
            raise
        except Exception as error:
            raise refusal(f"a plugin failed to open it: {one_line(error)}", path=uri) from error
        if result is None or isinstance(result, result_type):
            return result
        raise refusal(f"a plugin returned {result!r}, not a {result_type.__name__}", path=uri)

    def sink(self, where: str | os.PathLike[str], *, force: bool = False) -> Sink:
        """Open an output; a name with ``://`` is opened by a plugin or fsspec.

        A name that ends with a slash is a ``Folder``. Raises WriteRefusedError if the folder is
        not writable or the file exists.
        """
        checked_type(force, bool, "force", "True or False")
        from fxframework.io.folder import Folder, names_folder
        from fxframework.io.sink import Sink

        if isinstance(where, str) and "://" in where:
            sink = self._open_by_plugin("fx_open_sink", where, Sink, WriteRefusedError)
            if sink is not None:
                return sink
            from fxframework.io.remote import open_sink

            return open_sink(where, force=force)
        if names_folder(where):
            return Folder.open(where, force=force)
        return Sink.open(where, force=force)

    def detect(self, source: Source) -> Reader:
        """Return the reader for a source. Raises NoReaderError if none or several recognize it."""
        probe = Probe(head=source.read(0, HEAD), size=source.size, name=source.suffix_name)
        ranking = detect.rank(self._registered("readers"), probe)
        for failure in ranking.failures:
            self._fail_once(
                self.owner(failure.reader),
                f"the sniffer of {failure.reader.format} failed: {one_line(failure.error)}",
            )
        return detect.choose(
            ranking, attrs.evolve(probe, name=source.name), unpacked=source.unpacked
        )

    def read(
        self,
        source: Source,
        reader: Reader,
        *,
        strict: bool = False,
        options: Mapping[str, Any] | None = None,
        budget: Budget | None = None,
    ) -> Capture:
        """Open a source with a given reader.

        ``budget`` bounds the operation; by default it starts here, with the limits in ``options``.
        Raises UsageError for unknown options, and the errors of the reader.
        """
        from fxframework.model.capture import Capture, OpenRequest

        options = options or {}
        values = parse_options(
            options, (*reader.options, *LIMIT_OPTIONS), whose=f"the reader of {reader.format}"
        )
        limits = limits_of(options)
        if budget is None:
            budget = Budget(limits)
        source.bill(budget)
        request = OpenRequest(
            limits=limits,
            budget=budget,
            strict=strict,
            options={option.name: values[option.name] for option in reader.options},
            observer=self._diagnostic_observer(),
            host=self,
        )
        with contained():
            capture = self.called(reader, reader.open, source, request)
        if not isinstance(capture, Capture):
            raise self.faulty(reader, f"open() returned {capture!r}, not a Capture")
        findings = capture.diagnostics
        if not source.size and not findings.reported(rules.EMPTY_INPUT.code):
            findings.add(rules.EMPTY_INPUT, 0)
        findings.before_look = None  # it refers to the capture, which is freed by references alone
        self.notify("fx_capture_opened", capture=capture)
        return capture

    # --- Observers ---

    def _diagnostic_observer(self) -> Callable[[Diagnostic], None] | None:
        """Return the function that readers call with every finding; None without observers."""
        if not self._manager.hook.fx_diagnostic.get_hookimpls():
            return None
        return lambda diagnostic: self.notify("fx_diagnostic", diagnostic=diagnostic)

    def notify(self, hook: str, **arguments: Any) -> None:
        """Call the observers of a hook; an observer that raises is listed and not called again."""
        for impl in getattr(self._manager.hook, hook).get_hookimpls():
            name = impl.plugin_name
            if (name, hook) in self._silenced:
                continue
            try:
                self._call(hook, impl.plugin, **arguments)
            except Exception as error:  # noqa: BLE001 (code of plugins; listed)
                self._silenced.add((name, hook))
                self._fail(self._plugins[name], f"{hook} failed: {one_line(error)}")

    def _fail_once(self, plugin: Plugin, error: str) -> None:
        """List a fault of a plugin, unless it is listed already."""
        failure = PluginFailure(plugin=plugin.name, distribution=plugin.distribution, error=error)
        if failure not in self._failures:
            self._fail(plugin, error)

    # --- Command line ---

    def add_commands(self, cli: click.Group, reserved: Iterable[str]) -> None:
        """Let plugins add commands to ``fxf`` (``fx_cli``).

        A command with the name of one of fxframework or of an earlier plugin is listed and left
        out.
        """
        owners = dict.fromkeys(reserved, "fxframework")
        """What each command belongs to, for messages."""
        for impl in self._manager.hook.fx_cli.get_hookimpls():
            plugin = self._plugins[impl.plugin_name]
            earlier_commands = dict(cli.commands)
            try:
                self._call("fx_cli", impl.plugin, cli=cli)
            except Exception as error:  # noqa: BLE001 (code of plugins; listed)
                self._fail(plugin, f"fx_cli failed: {one_line(error)}")
            for name, command in list(cli.commands.items()):
                earlier_command = earlier_commands.get(name)
                if command is earlier_command:
                    continue
                if name not in owners:
                    owners[name] = plugin.origin
                    plugin.registers.setdefault("commands", []).append(name)
                    continue
                self._fail(
                    plugin,
                    f"command {name!r} already belongs to {owners[name]}; "
                    f"that of {plugin.origin} is left out",
                )
                cli.commands.pop(name)
                # Commands of fxframework are added when they are used: there may be none so far.
                if earlier_command is not None:
                    cli.commands[name] = earlier_command


def default_host() -> Host:
    """Return the shared host of the installed plugins, and of the files of ``FXF_PLUGIN_PATH``."""
    return _shared_host(plugin_files.stamp(os.environ))


@functools.lru_cache(maxsize=2)
def _shared_host(stamp: object) -> Host:
    """Return a host that is made again when the plugin files change, as ``stamp`` tells."""
    del stamp
    return Host()


def open(
    what: Input, format: str | None = None, *, strict: bool = False, **options: Any
) -> Capture:
    """Open a capture: a path, ``-`` for standard input, bytes, or a file open in binary mode.

    ``format`` names the reader, which is otherwise detected; ``options`` are the reader's and
    the limits. Raises what ``Host.open`` raises; use the capture as a context manager.
    """
    return default_host().open(what, format=format, strict=strict, options=options)


# --- Helpers ---


@attrs.frozen
class _Installed:
    """An installed plugin, not yet imported."""

    entry: EntryPoint
    distribution: str
    version: str
    requirements: Sequence[str] = ()
    """What its distribution requires."""

    @property
    def order(self) -> tuple[bool, str, str]:
        """Sorts the bundled plugins first, then by distribution and name."""
        return self.distribution != PROJECT, self.distribution, self.entry.name


def _installed() -> list[_Installed]:
    """Return the installed plugins in the order in which they are loaded."""
    plugins: dict[tuple[str, str], _Installed] = {}
    facts = functools.cache(_facts)  # reading them takes a millisecond or two
    for entry in entry_points(group=GROUP):
        distribution, version, requirements = facts(entry.dist)
        # A distribution can be found twice, once as egg-info; use the first on the path.
        plugins.setdefault(
            (distribution, entry.name), _Installed(entry, distribution, version, requirements)
        )
    return sorted(plugins.values(), key=lambda plugin: plugin.order)


def _facts(distribution: Distribution | None) -> tuple[str, str, Sequence[str]]:
    """Return the name, version and requirements of a distribution."""
    if distribution is None:
        return "unknown", "", ()
    return str(distribution.name), str(distribution.version), distribution.requires or ()


def _names(text: str) -> set[str]:
    """Return the names in a variable, which commas or spaces separate."""
    return set(re.split(r"[,\s]+", text.strip())) - {""}


def _collide(kind: _Kind, registered_item: Any, new_item: Any) -> bool:
    """Return whether two descriptors of a kind cannot both be registered."""
    if isinstance(registered_item, Exporter):
        return registered_item.overlaps(new_item)
    return kind.name(registered_item) == kind.name(new_item)


def _listed(kind: _Kind, result: Any) -> list[Any]:
    """Return the result of a hook, one descriptor or several, as a list."""
    return [result] if isinstance(result, kind.type) else list(result)


def limits_of(given: Mapping[str, Any]) -> Limits:
    """Return the limits among some options. Raises UsageError for an invalid value."""
    limit_options = {name: given[name] for name in Limits.names() if name in given}
    values = parse_options(limit_options, LIMIT_OPTIONS, whose="a reader")
    try:
        return Limits(**values)
    except ValueError as error:
        # `not >= 0` also finds NaN, which no comparison holds for.
        name = next(name for name, value in values.items() if value is not None and not value >= 0)
        reason = "cannot be negative" if values[name] < 0 else "must be a number"
        raise UsageError(f"option {name} {reason}", remedy="0 means no limit") from error
