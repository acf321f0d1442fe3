"""Where settings come from: the command line, the environment, `silkline.toml`, a spider's file, defaults.

They are resolved once, strongest first:

1. what the command line says;
2. `SILKLINE_<NAME>` in the environment, such as SILKLINE_PER_HOST=4;
3. the bare name in the environment, such as CONCURRENCY=200, for the settings in BARE_NAMES: containers are
   tuned that way; a value that does not fit is another program's, and warned about;
4. `silkline.toml` in the working directory, or the file that is named;
5. what a spider's file sets;
6. the default.

Every value is converted and checked; any other bad one is an error that names its source and what is allowed.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Set
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from silkline.config import Settings
from silkline.errors import ConfigError, SettingError
from silkline.files import shown_output

TOML_NAME = "silkline.toml"
ENV_PREFIX = "SILKLINE_"
DEFAULT = "default"
BARE_NAMES = frozenset(
    {"concurrency", "per_host", "delay", "timeout", "retries", "processes"}
    | {"max_pages", "max_depth", "max_body", "frontier", "log_level", "metrics_port"}
)
"""Not the rest: JOB, OUTPUTS, LOG_FILE or FRESH of another program could overwrite what it has no say in."""


class Kind(msgspec.Struct, frozen=True):
    """What a setting may be (in words that follow "must be") and how text for it is written.

    joint: what stands between key and value of a line where a mapping is given. secret: never shown.
    """

    allowed: str
    form: str = ""
    optional: bool = False
    joint: str = ""
    secret: bool = False


def _kind_of(field: Any) -> Kind:
    info: Any = msgspec.inspect.type_info(field)
    optional = isinstance(info, msgspec.inspect.UnionType)
    if isinstance(info, msgspec.inspect.UnionType):
        info = info.types[0]
    allowed = info.extra_json_schema["description"] + (", or none" if optional else "")
    return Kind(allowed, optional=optional, **(info.extra or {}))


FIELDS = {field.name: field for field in msgspec.structs.fields(Settings)}
KINDS = {name: _kind_of(field.type) for name, field in FIELDS.items()}

_SINGULAR = {"outputs": "output", "allow_hosts": "allow_host", "paths": "path", "headers": "header"}
_SYNONYMS = {"yes": "true", "on": "true", "no": "false", "off": "false", "warn": "warning"}
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_LARGEST_FIRST = (("d", 86_400.0), ("h", 3_600.0), ("m", 60.0))
LONG_DELAY = 3_600.0
"""Seconds between two pages of a host from which on somebody may have mistaken the unit."""
_BYTES = {"b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 2.0**10, "mib": 2.0**20, "gib": 2.0**30}
_USER_PASSWORD = re.compile(r"(://[^:@]*):.*@", re.S)
_OF_AUTHORITY = re.compile(r"(://[^/?#:@\s]*):[^/?#\s]*@")
_OF_AUTHORITY_IN_JSON = re.compile(r'(://[^/?#:@\s"\\]*):(?:\\.|[^/?#\s"\\])*@')
"""The same up to the end of a text in JSON, as the next one may have an @."""
_SECRET_NAME = r"[^=&;#]*(?:password|passwd|pwd|token|secret|credential|signature|key)|auth|sig|sid"
_SECRET_PARAMETER = re.compile(rf"([?&;](?:{_SECRET_NAME})=)[^&;#]*", re.I)
_ENTRY = re.compile(r"`\$\[(\d+)\]")
"""Which of several values an error of msgspec is about."""
_WITH_UNIT = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)\s*([A-Za-z]+)")


class Resolved(msgspec.Struct, frozen=True):
    """Settings, where each value came from, and lines that the user should read."""

    settings: Settings
    origins: Mapping[str, str]
    warnings: tuple[str, ...] = ()

    def having(self, name: str, value: Any, origin: str) -> Resolved:
        """The same with another value for one setting."""
        settings = msgspec.structs.replace(self.settings, **{name: value})
        return Resolved(settings, {**self.origins, name: origin}, self.warnings)

    @contextmanager
    def naming_origins(self) -> Iterator[None]:
        """Say in front of a SettingError where the setting's value comes from."""
        try:
            yield
        except SettingError as error:
            raise ConfigError(f"{self.origins[error.setting]}: {error}") from error


Found = dict[str, tuple[Any, str]]
"""By setting: a raw value and its origin."""


def resolve(
    given: Mapping[str, Any],
    environ: Mapping[str, str],
    *,
    config: Path | None = None,
    spider: Mapping[str, Any] | None = None,
    spider_name: str = "spider file",
    names: Collection[str] = FIELDS,
) -> Resolved:
    """Resolve all settings, or only those in `names`: the others stay at their defaults, whatever is said.

    given: what the command line says, by setting; None where it says nothing.
    config: a TOML file that must exist; None for `silkline.toml` in the working directory, if there is one.
    spider: what the spider's file sets.

    Raises ConfigError for a bad value, an unknown key and an unreadable file.
    """
    found: Found = {name: (value, spider_name) for name, value in (spider or {}).items()}
    found |= _from_toml(config)
    strong = _from_environment(environ)
    strong |= {name: (value, option_of(name)) for name, value in given.items() if value is not None}
    bare, ignored = _from_bare_names(environ, set(names) - set(strong))
    found |= bare | strong
    values = {name: convert(name, value, origin) for name, (value, origin) in found.items() if name in names}
    settings = Settings(**values)
    origins = {name: found[name][1] if name in values else DEFAULT for name in FIELDS}
    doubts = [*doubtful_delay(settings.delay, origins["delay"])]
    if set(FIELDS) <= set(names):
        doubts += useless(settings)
    return Resolved(settings, origins, (*_misspelt(environ), *ignored, *doubts))


def settings_from(values: Mapping[str, Any], where: str, base: Settings | None = None) -> Settings:
    """Check `values` and lay them over `base` (the defaults). Raises ConfigError, which names `where`."""
    checked = {name: convert(_known(name, where), value, where) for name, value in values.items()}
    return msgspec.structs.replace(base or Settings(), **checked)


def convert(name: str, value: Any, where: str) -> Any:
    """The value of setting `name`, of its own type. Raises ConfigError, which says what is allowed."""
    converted = _convert(FIELDS[name], KINDS[name], value, where)
    if name == "item_key" and isinstance(value, str) and not converted:
        raise ConfigError(f"{where}: item_key must be the name of a field, or several, not {value[:80]!r}")
    return converted


def convert_field(field: msgspec.structs.FieldInfo, value: Any, where: str) -> Any:
    """The same for a field of another struct whose type has a description, as those in `config` do."""
    return _convert(field, _kind_of(field.type), value, where)


def _convert(field: msgspec.structs.FieldInfo, kind: Kind, value: Any, where: str) -> Any:
    try:
        return msgspec.convert(_plain(kind, value), field.type, strict=False)
    except msgspec.ValidationError as error:
        at = _ENTRY.search(str(error))
        if kind.secret:
            wrong = f"entry {int(at[1]) + 1} is not" if at else "what is there is not"
            raise ConfigError(f"{where}: {field.name} must be {kind.allowed}; {wrong}") from error
        written = redacted(str(_blamed(value, at)))[:200]
        raise ConfigError(f"{where}: {field.name} must be {kind.allowed}, not {written!r}") from error


def _blamed(value: Any, at: re.Match[str] | None) -> Any:
    """Of several values the one that an error of msgspec is about."""
    several = isinstance(value, (list, tuple))
    return value[int(at[1])] if several and at and int(at[1]) < len(value) else value


def option_of(name: str) -> str:
    """The command line option that gives a setting."""
    return "--" + _SINGULAR.get(name, name).replace("_", "-")


def shown(name: str, settings: Settings) -> str:
    """A value as `--show-config` prints it, without the passwords in it."""
    value = getattr(settings, name)
    if KINDS[name].secret:
        return ", ".join(map(_without_secret, value))
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:g}"
    if name == "outputs":
        return ", ".join(map(shown_output, value))
    if isinstance(value, tuple):
        return ", ".join(redacted(str(part)) for part in value)
    return redacted(str(value))


def _without_secret(line: str) -> str:
    """Credentials up to their secret; a proxy with its host alone."""
    if match := re.match(r"\S+\s+(?:basic|bearer)\b", line, re.IGNORECASE):
        return f"{match[0]} ***"
    if match := re.match(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+: ", line):
        return f"{match[0]}***"  # a header's value may be a key
    scheme, mark, _ = line.rpartition("@")[0].partition("://")
    if "@" in line:
        return f"{scheme}{mark}***@{line.rpartition('@')[2]}"
    return re.sub(r"^([^\s:]+:\d+):\S+", r"\1:***", line)  # host:port:user:password


def redacted(text: str) -> str:
    """`text` with the secrets of a URL replaced by `***`: the user's password, and parameters named like one.

    The last @ ends a password, whatever it holds: one with characters that should have been escaped is
    hidden all the same.
    """
    if "://" not in text:
        return text
    text = _USER_PASSWORD.sub(r"\1:***@", text)
    return _SECRET_PARAMETER.sub(r"\1***", text)


def without_password(url: str) -> str:
    """A valid URL with its user's password replaced by `***`."""
    return _OF_AUTHORITY.sub(r"\1:***@", url, 1) if "@" in url else url


def without_passwords(text: str) -> str:
    """The same for text that holds valid URLs, such as the line of an error."""
    return _OF_AUTHORITY.sub(r"\1:***@", text) if "@" in text else text


def without_passwords_in_json(text: str) -> str:
    """The same for JSON with such texts in it."""
    return _OF_AUTHORITY_IN_JSON.sub(r"\1:***@", text) if "@" in text else text


def seconds_in(text: str) -> float | None:
    """The seconds of 500ms, 30s, 5m, 2h, 1d or a bare number; None for other text."""
    match = _WITH_UNIT.fullmatch(text.strip())
    if match:
        unit = _SECONDS.get(match[2].lower())
        return None if unit is None else float(match[1]) * unit
    try:
        return float(text)
    except ValueError:
        return None


def _from_environment(environ: Mapping[str, str]) -> Found:
    found: Found = {}
    for name in FIELDS:
        variable = ENV_PREFIX + name.upper()
        if value := _given(environ, variable):
            found[name] = (value, f"environment variable {variable}")
    return found


def _from_bare_names(environ: Mapping[str, str], wanted: Set[str]) -> tuple[Found, list[str]]:
    """What can be used, and a warning for each value that cannot."""
    found: Found = {}
    warnings = []
    for name in sorted(BARE_NAMES & wanted):
        origin = f"environment variable {name.upper()}"
        if value := _given(environ, name.upper()):
            try:
                convert(name, value, origin)
            except ConfigError as error:
                warnings.append(f"{error}; ignored (if it is meant for silkline: {ENV_PREFIX}{name.upper()})")
            else:
                found[name] = (value, origin)
    return found, warnings


def _given(environ: Mapping[str, str], variable: str) -> str:
    """An empty variable counts as unset: that is how a compose file switches one off."""
    return environ.get(variable, "").strip()


def _from_toml(config: Path | None) -> Found:
    path = config or Path(TOML_NAME)
    named = shown_output(str(path))
    try:
        table = tomllib.loads(path.read_text("utf-8-sig"))
    except FileNotFoundError:
        if config is None:
            return {}
        raise ConfigError(f"{named}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{named}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: is not valid TOML: {_in_words(error)}") from error
    return {_known(key, str(path)): (value, str(path)) for key, value in table.items()}


def _in_words(error: tomllib.TOMLDecodeError) -> str:
    """tomllib's line, which ends with where the mistake is."""
    return str(error).replace(r"Illegal character '\n'", "a quoted text is not closed at the end of its line")


def _known(key: str, where: str) -> str:
    name = key.replace("-", "_")
    if name in FIELDS:
        return name
    close = difflib.get_close_matches(name, FIELDS, n=1)
    hint = f"did you mean {close[0]!r}?" if close else "the settings are " + ", ".join(FIELDS)
    raise ConfigError(f"{where}: there is no setting {key!r}; {hint}")


def _misspelt(environ: Mapping[str, str]) -> tuple[str, ...]:
    names = {ENV_PREFIX + name.upper() for name in FIELDS}
    unknown = sorted(key for key in environ if key.startswith(ENV_PREFIX) and key not in names)
    return tuple(
        f"the environment variable {key} is no setting; did you mean {close[0]}?"
        for key in unknown
        if (close := difflib.get_close_matches(key, names, n=1, cutoff=0.85))
    )


def doubtful_delay(delay: float, origin: str) -> Iterator[str]:
    """A line on a delay (in seconds) that can be meant, but most often is a slip."""
    if delay >= LONG_DELAY:
        yield f"{origin}: one page of each host every {in_words(delay)} (delay = {delay:g} s)"


def useless(settings: Settings) -> Iterator[str]:
    """A line on each setting that another one leaves without effect."""
    if settings.insecure and settings.ca_file:
        yield "insecure takes any certificate: ca_file has no effect beside it"
    seen = settings.debug_http or settings.har or any(".warc" in output for output in settings.outputs)
    if settings.wire_secrets and not seen:
        yield "wire_secrets has no effect: nothing shows the wire, as debug_http, har and an archive do"


def in_words(seconds: float) -> str:
    """A length of time in the largest unit that it fills: 5400 -> 1.5 h"""
    unit, size = next((pair for pair in _LARGEST_FIRST if seconds >= pair[1]), ("s", 1.0))
    return f"{seconds / size:.3g} {unit}"


def _plain(kind: Kind, value: Any) -> Any:
    """Text as msgspec takes it: lengths of time and sizes as numbers, words in lower case, "none" as None."""
    if kind.joint and isinstance(value, Mapping):
        return [f"{key}{kind.joint}{text}" for key, text in value.items()]
    if not isinstance(value, str):
        return value
    text = value.strip()
    if kind.optional and text.lower() == "none":
        return None
    if kind.form == "word":
        return _SYNONYMS.get(text.lower(), text.lower())
    if kind.form == "literal":
        return text.lower()
    if kind.form == "lines":
        return [line.strip() for line in text.splitlines() if line.strip()]
    if kind.form == "list":
        return [part.strip() for part in text.split(",") if part.strip()]
    units = {"seconds": _SECONDS, "bytes": _BYTES}.get(kind.form)
    match = _WITH_UNIT.fullmatch(text) if units else None
    if units and match and match[2].lower() in units:
        number = float(match[1]) * units[match[2].lower()]
        return int(number) if kind.form == "bytes" else number
    return text
