"""Steps that find dates in text; they need the extra `clean` (dateparser)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from silkline.errors import ConfigError
from silkline.steps.fields import Step, mapped

Read = Callable[[str], datetime]


def date(*fields: str, languages: Sequence[str] = ("en",), order: str | None = None) -> Step:
    """The date in a text, as a `datetime.date`: of "31 January 2030", "31.01.2030" or "2 days ago"; of empty
    text None. One without a day, a month or a year is none.

    languages: two-letter codes of those that the site writes. order: of the parts of 01/02/2030, such as
    "DMY"; None for that of the language, which is "MDY" for English.

    Raises ConfigError where dateparser is not installed, or does not know a language or order. An item whose
    text has no date is dead.
    """
    read = _reader("date", fields, languages, order)
    return mapped("date", fields, lambda value: _read(read, value, whole=False))


def date_time(*fields: str, languages: Sequence[str] = ("en",), order: str | None = None) -> Step:
    """The same as a `datetime.datetime`; with a time zone where the text has one."""
    read = _reader("date_time", fields, languages, order)
    return mapped("date_time", fields, lambda value: _read(read, value, whole=True))


def _read(read: Read, value: Any, *, whole: bool) -> Any:
    if not isinstance(value, str):
        return value
    if not value.strip():
        return None
    found = read(value)
    return found if whole else found.date()


def _reader(step: str, fields: Sequence[str], languages: Sequence[str], order: str | None) -> Read:
    if not fields:
        raise TypeError(f"{step}() wants the names of fields: {step}('since')")
    try:
        import dateparser  # type: ignore[import-untyped]
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"this step needs the package {error.name}: pip install 'silkline[clean]'"
        ) from error
    # Without languages it would load them all, for seconds, and take its pick anew for every text.
    spoken = [languages] if isinstance(languages, str) else list(languages)
    settings: dict[str, Any] = {"REQUIRE_PARTS": ["day", "month", "year"]}
    if order is not None:
        settings["DATE_ORDER"] = order

    def read(text: str) -> datetime:
        found: datetime | None = dateparser.parse(text, languages=spoken, settings=settings)
        if found is None:
            raise ValueError(f"no date in {text!r:.80}")
        return found

    try:
        read("2030-01-31")  # so that what it loads at first does not hold up a crawl
    except Exception as error:
        raise ConfigError(f"{step}(languages={spoken}, order={order!r}): {error}") from error
    return read
