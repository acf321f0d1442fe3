"""Live settings: what an operator may change while workers run.

They are kept with the job as text by name, where any program may write them: what is not as it should be is
named and left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from silkline.config import Settings
from silkline.errors import ConfigError
from silkline.resolve import FIELDS, convert_field
from silkline.values import Flag

MAX_TEXT = 100
"""Characters of a value; no setting needs more."""


class Switches(msgspec.Struct, frozen=True):
    """Live settings that are no settings of a crawl.

    paused: nothing new is fetched; what runs may end, and nothing is lost.
    """

    paused: Flag = False


LIVE = {
    **{name: FIELDS[name] for name in ("concurrency", "per_host", "delay", "timeout", "retries")},
    **{field.name: field for field in msgspec.structs.fields(Switches)},
}


class Live(msgspec.Struct, frozen=True):
    """Live settings that were read: values by name, and a line for each text that could not be.

    settings: those that stand in the place of a worker's own.
    """

    settings: Mapping[str, Any] = {}
    paused: bool = False
    complaints: tuple[str, ...] = ()

    def over(self, settings: Settings) -> Settings:
        return msgspec.structs.replace(settings, **self.settings)


def check_live(name: str, text: str, where: str) -> Any:
    """The value of a live setting. Raises ConfigError, which says what is allowed."""
    if name not in LIVE:
        raise ConfigError(
            f"{where}: there is no live setting {name[:MAX_TEXT]!r}; there are {', '.join(LIVE)}"
        )
    if len(text) > MAX_TEXT:
        raise ConfigError(f"{where}: {name} must be shorter, not {len(text)} characters long")
    return convert_field(LIVE[name], text, where)


def read_live(texts: Mapping[str, str], where: str) -> Live:
    """What can be used of the texts that were found."""
    values: dict[str, Any] = {}
    complaints = []
    for name, text in sorted(texts.items()):
        try:
            values[name] = check_live(name, text, where)
        except ConfigError as error:
            complaints.append(f"{error}; ignored")
    paused = values.pop("paused", False)
    return Live(values, paused, tuple(complaints))


def assigned(words: Sequence[str]) -> dict[str, str]:
    """NAME=VALUE, several, checked, as they are kept. Raises ConfigError."""
    texts: dict[str, str] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise ConfigError(f"{word[:MAX_TEXT]!r} sets nothing: write {name[:MAX_TEXT]}=VALUE")
        name = name.strip().replace("-", "_")
        texts[name] = _written(check_live(name, text.strip(), "config"))
    return texts


def _written(value: Any) -> str:
    """As any program reads it: true or false, and numbers without a unit."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.15g}"
