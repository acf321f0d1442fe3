"""An output that is a URL: where the server is, and what the sink is to know."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from silkline.errors import ConfigError
from silkline.files import is_address, shown_output
from silkline.outcome import Batch

COMMON = ("batch", "batch_bytes", "batch_seconds", "timeout")
"""Options that outputs in databases have, beside the one that names the table."""
CONNECT_SECONDS = 10.0
STATEMENT_SECONDS = 60.0
"""Of a whole batch; `?timeout=` says otherwise."""
SIZES = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}
MANY = "readPreferenceTags"
"""MongoDB's option that may stand in a URL several times."""
NAME = re.compile(r"[^\0]{1,63}")


class Address(msgspec.Struct, frozen=True):
    """An output's URL, taken apart. user, password, path: percent-decoded, the path without its first slash.

    hosts: one or more as written, `host[:port]`, separated by commas; "" for none. options: of the driver,
    without those that every sink has. table: where the items go. create: whether tables and columns may be
    created. noun: the option that names the table.
    """

    scheme: str
    hosts: str
    user: str | None
    password: str | None
    path: str
    options: Mapping[str, str]
    table: str
    batch: Batch
    create: bool = True
    noun: str = "table"

    @property
    def shown(self) -> str:
        """Without user, password and options; fit for messages, and the same for the same table."""
        return f"{self.scheme}://{self.hosts}/{self.path}?{self.noun}={self.table}"


def files_in(outputs: Iterable[str]) -> tuple[str, ...]:
    """Those outputs that are files."""
    return tuple(output for output in outputs if not is_address(output))


OBJECTS = frozenset({"s3", "s3a", "gs", "az", "abfs", "abfss", "azure"})
"""Schemes of buckets, which hold files."""


def is_in_bucket(output: str) -> bool:
    """Whether an output is objects in a bucket."""
    return is_address(output) and output.partition("://")[0].lower() in OBJECTS


def address_of(
    output: str, *, create: bool = True, usual: Batch | None = None, noun: str = "table"
) -> Address:
    """Take it apart. usual: the batch where the URL says nothing. noun: the option that names the table
    (`table` does so, too); "" where there is none, and no batches.

    Raises ConfigError, which never repeats a password.
    """
    usual = usual or Batch()
    shown = shown_output(output)
    try:
        parts = urlsplit(output)
    except ValueError as error:
        raise ConfigError(f"output {shown!r} is no URL; write special characters as %XX") from error
    loose = "@" in parts.path or ("@" in parts.query and "@" not in parts.netloc) or "#" in output
    if loose:  # what comes before it may be half a password
        raise ConfigError(
            f"output {shown!r}: write special characters of user, password and options as %XX: @ as %40, "
            "/ as %2F, ? as %3F, # as %23"
        )
    userinfo, _, hosts = parts.netloc.rpartition("@")
    user, colon, password = userinfo.partition(":")
    said = parse_qsl(parts.query, keep_blank_values=True)
    options = dict(said)
    for name in options:
        if name != MANY and sum(name == other for other, _ in said) > 1:
            raise ConfigError(f"output {shown!r}: {name}= stands there more than once; leave one")
    table, batch = "", usual
    if noun:
        table = _table(shown, options, noun)
        batch = Batch(
            _whole(shown, "batch", options.pop("batch", ""), usual.count),
            size_of(shown, "batch_bytes", options.pop("batch_bytes", ""), usual.bytes),
            seconds_of(shown, "batch_seconds", options.pop("batch_seconds", ""), usual.seconds),
        )
    return Address(
        scheme=parts.scheme.lower(),
        hosts=hosts,
        user=unquote(user) if userinfo else None,
        password=unquote(password) if colon else None,
        path=unquote(parts.path.removeprefix("/")),
        options=options,
        table=table,
        batch=batch,
        create=create,
        noun=noun,
    )


def _table(shown: str, options: dict[str, str], noun: str) -> str:
    """What the options say of it, taken out of them."""
    said = [name for name in {"table": None, noun: None} if name in options]
    if len(said) > 1:
        raise ConfigError(f"output {shown!r}: table= and {noun}= name the same thing; leave one")
    table = options.pop(said[0]) if said else "items"
    if (not said or said[0] == "table") and not NAME.fullmatch(table):
        raise ConfigError(
            f"output {shown!r}: table={table!r} can be no table's name; give it 1 to 63 characters"
        )
    return table


def refuse_unknown(address: Address, known: Iterable[str], more: str = "") -> None:
    """Raise ConfigError at an option that is not one of these or of all databases. more: what else there
    is, in words."""
    every = sorted({*known, *COMMON, address.noun})
    for name in sorted(address.options.keys() - set(every)):
        there = ", ".join(every) + more
        raise ConfigError(f"output {address.shown!r}: there is no option {name!r}; there are: {there}")


def split_timeout(address: Address, usual: float) -> tuple[Address, float]:
    """The address without its option `timeout`, and what that says, in seconds: how long a batch may take
    before the server counts as hung. Raises ConfigError."""
    options = dict(address.options)
    text = options.pop("timeout", "")
    if text and (not re.fullmatch(r"\d{1,5}(\.\d{1,3})?", text) or not float(text)):
        raise ConfigError(
            f"output {address.shown!r}: timeout={text!r} is no number of seconds; write timeout=60"
        )
    return msgspec.structs.replace(address, options=options), float(text) if text else usual


def place_in(shown: str, place: str, usual: int) -> tuple[str, int]:
    """The host, as written, and the port of `host[:port]`; usual: where none is named. Raises ConfigError."""
    host, colon, port = place.rpartition(":")
    if not colon or port.endswith("]"):
        host, port = place, str(usual)
    if not port.isdecimal() or not 0 < int(port) < 65_536 or "," in host:
        raise ConfigError(
            f"output {shown!r}: {place!r} is no host and port; write host:{usual}, and special "
            "characters in the password as %XX"
        )
    return host, int(port)


def _whole(shown: str, name: str, text: str, usual: int) -> int:
    if not text:
        return usual
    if not re.fullmatch(r"\d{1,9}", text) or not int(text):
        raise ConfigError(f"output {shown!r}: {name}={text!r} is no whole number from 1; write {name}=1000")
    return int(text)


def size_of(shown: str, name: str, text: str, usual: int) -> int:
    """The bytes that an option says. Raises ConfigError."""
    if not text:
        return usual
    match = re.fullmatch(r"(\d{1,9})([KMG]?)B?", text, re.I)
    if match is None or not int(match[1]):
        raise ConfigError(f"output {shown!r}: {name}={text!r} is no size; write {name}=8MB")
    return int(match[1]) * SIZES[match[2].upper()]


def seconds_of(shown: str, name: str, text: str, usual: float, most: int = 60) -> float:
    """The seconds that an option says, at most so many. Raises ConfigError."""
    if not text:
        return usual
    if not re.fullmatch(r"\d{1,6}(\.\d{1,6})?", text) or float(text) > most:
        raise ConfigError(f"output {shown!r}: {name}={text!r} is not 0 to {most} seconds; write {name}=0.5")
    return float(text)
