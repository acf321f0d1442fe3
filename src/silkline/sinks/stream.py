"""A Redis stream: an entry for each item, for consumers that read while the crawl runs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources import files
from typing import Any
from urllib.parse import quote, urlencode

import redis.asyncio as aredis
from redis import exceptions

from silkline.errors import ConfigError, SinkAwayError, SinkError
from silkline.outcome import MASK, Item
from silkline.sinks.address import Address, address_of, refuse_unknown
from silkline.sinks.failing import opening
from silkline.sinks.keyed import OwnSink
from silkline.sinks.record import json_of

SLICE = 500
"""Items of one script: the server does nothing else meanwhile."""
REMEMBERED = 1_000_000
PASSING = (
    exceptions.BusyLoadingError,
    exceptions.ReadOnlyError,
    exceptions.OutOfMemoryError,
    exceptions.ClusterDownError,
    exceptions.TryAgainError,
    exceptions.MasterDownError,
)
AWAY = (
    "OOM",
    "READONLY",
    "MISCONF",
    "MASTERDOWN",
    "LOADING",
    "BUSY",
    "NOREPLICAS",
    "CLUSTERDOWN",
    "TRYAGAIN",
)
DENIED = ("WRONGPASS", "NOAUTH", "NOPERM")
TIMEOUT = 30.0
OPTIONS = ("maxlen", "remember")


class RedisStreamSink(OwnSink):
    """`redis+stream://user:password@host:6379/0?stream=items` (`rediss+stream://` for TLS).

    An entry has the fields `key` (the item's identity), `fingerprint`, `index` ("" for items with a key of
    their own) and `item` (JSON). What is written again with the same content is not appended again; with
    another content it is, and the last entry of a key counts.

    options: maxlen, about how many entries are kept (all). remember, how many identities are (1,000,000).
    timeout, seconds for an answer (30).
    """

    def __init__(self, output: str, *, create: bool = True) -> None:
        address = address_of(output, create=create, noun="stream")
        _check(address)
        super().__init__(address.shown, address.batch)
        options = address.options
        self._create = address.create
        self._stream = address.table
        self._most = _whole(self.name, "maxlen", options.get("maxlen", "0"), least=0)
        self._room = _whole(self.name, "remember", options.get("remember", str(REMEMBERED)), least=2) // 2
        self._timeout = _whole(self.name, "timeout", options.get("timeout", ""), least=0.001, usual=TIMEOUT)
        self._url = _url(address)
        self._client: Any = None

    async def open(self) -> None:
        if self._client is None:
            try:
                self._client = aredis.Redis.from_url(
                    self._url,
                    socket_timeout=self._timeout,
                    socket_connect_timeout=min(10.0, self._timeout),
                    client_name="silkline",
                )
            except ValueError as error:
                raise ConfigError(f"output {self.name!r} is no address of a Redis: check its port") from error
            self._append = self._client.register_script(_text("stream"))
            self._remove = self._client.register_script(_text("stream_trim"))
        with opening(), told(self.name):
            kind = (await self._client.type(self._stream)).decode()
        if kind not in ("none", "stream"):
            raise ConfigError(
                f"output {self.name!r}: {self._stream!r} is a {kind} there: choose another stream"
            )
        if kind == "none" and not self._create:
            raise ConfigError(
                f"output {self.name!r}: there is no stream {self._stream!r}: make it with "
                f"XGROUP CREATE {self._stream} readers $ MKSTREAM, or leave out --no-create"
            )

    def encode(self, fields: Mapping[str, Any]) -> bytes:
        return json_of(fields)

    async def write(self, items: Sequence[Item]) -> None:
        for start in range(0, len(items), SLICE):
            words: list[Any] = [self._most, self._room]
            for item in items[start : start + SLICE]:
                text = self.row(item)
                index = "" if item.key is not None else item.index
                digest = hashlib.blake2b(text, digest_size=12).hexdigest()
                words += (item.identity, digest, item.fingerprint, index, text)
            with told(self.name):
                await self._append(keys=[self._stream, *self._hashes, self._key("young")], args=words)

    async def trim(self, pages: Mapping[int, int]) -> None:
        words: list[Any] = []
        for page, index in pages.items():
            words += (f"{page & MASK:016x}", index)
        for start in range(0, len(words), 2 * SLICE):
            with told(self.name):
                await self._remove(keys=[self._stream, *self._hashes], args=words[start : start + 2 * SLICE])

    async def close(self) -> None:
        if self._client is not None:
            client, self._client = self._client, None
            await client.aclose()

    @property
    def _hashes(self) -> tuple[str, str]:
        return self._key("ids:0"), self._key("ids:1")

    def _key(self, name: str) -> str:
        """In a cluster on the same node as the stream."""
        tag = self._stream if "{" in self._stream else f"{{{self._stream}}}"
        return f"{tag}:silkline:{name}"


@contextmanager
def told(name: str) -> Iterator[None]:
    """Raise the sinks' errors in place of the driver's. name: of the sink, as it may be shown."""
    try:
        yield
    except (exceptions.AuthenticationError, exceptions.NoPermissionError) as error:
        raise SinkError(f"{name} refuses the user or the password: {_line(error)}") from error
    except (exceptions.ConnectionError, exceptions.TimeoutError, OSError, TimeoutError) as error:
        raise SinkAwayError(f"{name} is away: {_line(error)}") from error
    except exceptions.RedisError as error:
        text = _line(error).removeprefix("-")
        if text.startswith(DENIED):
            raise SinkError(f"{name} refuses the user or the password: {text}") from error
        if isinstance(error, PASSING) or text.startswith(AWAY) or any(f"-{word}" in text for word in AWAY):
            raise SinkAwayError(f"{name} cannot write now: {text}") from error
        raise SinkError(
            f"cannot write {name}: {text}; nothing is lost, mend it and run the same command again"
        ) from error


def _check(address: Address) -> None:
    refuse_unknown(address, OPTIONS)
    shown = f"output {address.shown!r}"
    if not address.table:
        raise ConfigError(f"{shown}: stream='' can be no stream's name")
    if not address.hosts:
        raise ConfigError(f"{shown}: name the server, as in redis+stream://localhost:6379/0?stream=items")
    if not (address.path or "0").isdecimal():
        raise ConfigError(
            f"{shown}: {address.path!r} is no database's number; write it as redis+stream://host/0"
        )


def _url(address: Address) -> str:
    login = ""
    if address.user is not None or address.password is not None:
        secret = "" if address.password is None else f":{quote(address.password, safe='')}"
        login = f"{quote(address.user or '', safe='')}{secret}@"
    scheme = address.scheme.partition("+")[0]
    return f"{scheme}://{login}{address.hosts}/{address.path or 0}?{urlencode({'protocol': 2})}"


def _whole(name: str, option: str, text: str, *, least: float, usual: float = 0) -> Any:
    if not text:
        return usual
    try:
        value: float = float(text) if isinstance(least, float) else int(text)
    except ValueError:
        value = least - 1
    if value < least:
        raise ConfigError(f"output {name!r}: {option}={text!r} must be a number from {least:g}")
    return value


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def _text(name: str) -> str:
    return (files("silkline.sinks") / f"{name}.lua").read_text()
