"""The way to Redis: connections, scripts, and patience with a server that is away."""

from __future__ import annotations

import asyncio
import hashlib
import random
import re
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from math import inf
from time import monotonic
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

import redis.asyncio as aredis
from redis import exceptions
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from silkline.errors import ConfigError, FrontierError
from silkline.frontier.redis_foreign import ForeignKeyError, naming
from silkline.resolve import redacted

CLUSTER, SENTINEL = "redis+cluster", "redis+sentinel"
SCHEMES = ("redis", "rediss", "unix", CLUSTER, "rediss+cluster", SENTINEL, "rediss+sentinel")

ANSWER_SECONDS = 10.0
"""How long an answer may take: a server that is stopped or cut off looks like one that is slow."""
CONNECT_SECONDS = 5.0
FIRST_PATIENCE = 10.0
"""Seconds that a command of the first connection is tried for: a wrong address should be said soon."""
MAX_PAUSE = 3.0

PASSING = (
    "LOADING",
    "READONLY",
    "OOM",
    "MOVED",
    "ASK",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "MASTERDOWN",
    "BUSY",
    "NOREPLICAS",
    "MISCONF",
    "UNBLOCKED",
)
"""First words of error replies that time or an operator mends; the command had no effect."""

_IN_SCRIPT = re.compile(r"(?:ERR )?Error running script \(call to \w+\): (?:@\w+: ?\d+: )*-?")
"""What Redis before version 7 puts in front of an error of a script."""

Say = Callable[[str], None]


class Script:
    """One verb: the common part, the parts that its first line names, and its own file."""

    def __init__(self, name: str) -> None:
        folder = files("silkline.frontier") / "lua"
        own = (folder / f"{name}.lua").read_text()
        first = own.partition("\n")[0]
        needs = first.removeprefix("-- needs:").split(",") if first.startswith("-- needs:") else []
        parts = ["common", *(need.strip() for need in needs)]
        self.name = name
        self.text = "".join((folder / f"{part}.lua").read_text() for part in parts) + own
        self.sha = hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()


@cache
def script(name: str) -> Script:
    return Script(name)


def address_of(url: str) -> str:
    """How a frontier's URL is shown: without user, password and options."""
    scheme, _, rest = url.partition("://")
    # A password may hold a slash that should have been escaped: the last @ ends it.
    parts = urlsplit(f"{scheme}://{rest.partition('?')[0].rpartition('@')[2]}")
    return urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))


def client_of(url: str, *, asynchronous: bool = True) -> Any:
    """A client for a frontier's URL, not connected yet. Raises ConfigError for a URL that is none."""
    import redis as sync

    module: Any = aredis if asynchronous else sync
    parts = urlsplit(url)
    _check_database(url, parts)
    options: dict[str, Any] = {
        "socket_timeout": ANSWER_SECONDS,
        "socket_connect_timeout": CONNECT_SECONDS,
        "decode_responses": False,
        "client_name": "silkline",
    }
    if asynchronous:
        options["retry"] = Retry(NoBackoff(), 0)  # the link tries again itself, and knows when it is safe
    try:
        if parts.scheme.endswith("+cluster"):
            plain = urlunsplit(parts._replace(scheme=parts.scheme.partition("+")[0]))
            return module.RedisCluster.from_url(plain, **options)
        if parts.scheme.endswith("+sentinel"):
            return _through_sentinel(url, module, options)
        client = module.Redis.from_url(url, **options)
        pool = client.connection_pool
        pool.connection_class(**pool.connection_kwargs)  # or an unknown option would only be met on the way
        return client
    except TypeError:
        raise ConfigError(
            f"{redacted(url)!r}: the client knows no such option behind the '?'; "
            "it takes those of redis-py, such as protocol=3 or ssl_ca_certs=FILE"
        ) from None
    except (ValueError, exceptions.RedisError):
        # What the parser says may quote a part of a password: one with a character that ends an address.
        raise ConfigError(
            f"{redacted(url)!r} is no address of a Redis: check its port and its options; "
            "in a password write / ? # as %2F %3F %23"
        ) from None


def _check_database(url: str, parts: SplitResult) -> None:
    """The client takes database 0 for what is no number."""
    name = parts.path.strip("/")
    if "@" in name or parts.scheme.startswith("unix") or parts.scheme.endswith("+sentinel"):
        return
    if parts.scheme.endswith("+cluster"):
        if name not in ("", "0"):
            raise ConfigError(f"{redacted(url)!r}: a cluster has no databases; leave out /{name}")
    elif not re.fullmatch(r"[0-9]{0,6}", name):
        raise ConfigError(
            f"{redacted(url)!r}: {name!r} is no database's number; write it as redis://host:6379/0"
        )


def _through_sentinel(url: str, module: Any, options: dict[str, Any]) -> Any:
    """redis+sentinel://[user:password@]host[:port][,host[:port]...]/service[/db]"""
    parts = urlsplit(url)
    userinfo, _, hosts = parts.netloc.rpartition("@")
    service, _, db = parts.path.strip("/").partition("/")
    if not service:
        raise ConfigError(f"{redacted(url)!r}: name the service, as in redis+sentinel://host:26379/mymaster")
    sentinels = []
    for host in hosts.split(","):
        name, _, port = host.rpartition(":") if ":" in host else (host, "", "26379")
        sentinels.append((name, int(port)))
    if userinfo:
        user, _, password = userinfo.partition(":")
        options |= {"username": unquote(user) or None, "password": unquote(password) or None}
    if parts.scheme.startswith("rediss"):
        options["ssl"] = True
    from redis.sentinel import Sentinel as SyncSentinel

    kind: Any = aredis.Sentinel if module is aredis else SyncSentinel
    watched = {"socket_timeout": CONNECT_SECONDS, "socket_connect_timeout": CONNECT_SECONDS}
    return kind(sentinels, sentinel_kwargs=watched).master_for(service, db=int(db or 0), **options)


class FellBackError(Exception):
    """The server came back with an older state, in which a call is missing that it had answered."""


class RedisLink:
    """Runs scripts, and waits for a server that is away, as long as it takes.

    say: told once when the server goes away, and once when it is back.

    Every script may be sent twice: those that would then do something twice carry the number of their
    call (see `lua/common.lua`).
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.say: Say = lambda line: None
        self._client: Any = None
        self.resent = 0
        """How often a command was sent again, whose first sending may have worked."""
        self._away_since: float | None = None
        self._deadline = inf

    async def open(self) -> None:
        """Raises FrontierError where no server answers, ConfigError where it wants other credentials."""
        self._deadline = inf
        self._client = client_of(self.url)
        try:
            async with asyncio.timeout(FIRST_PATIENCE):
                await self.command("PING")
        except TimeoutError as error:
            raise FrontierError(f"no Redis answers at {address_of(self.url)}; is it running?") from error

    async def close(self) -> None:
        if self._client is not None:
            client, self._client = self._client, None
            await client.aclose()

    def leave(self, patience: float) -> None:
        """From now on wait so many seconds at most, in all, for a server that is away."""
        self._deadline = min(self._deadline, monotonic() + patience)

    @property
    def is_open(self) -> bool:
        return self._client is not None

    @property
    def client(self) -> Any:
        if self._client is None:
            raise FrontierError("the frontier is not open")
        return self._client

    async def run(self, verb: str, key: str, call: bytes, args: Sequence[bytes] = ()) -> Any:
        """The script's reply; `key` is the partition's `meta`.

        Raises FrontierError for a job that is gone and for a script that fails, ForeignKeyError where a key
        is another program's.
        """
        wanted = script(verb)

        async def send() -> Any:
            try:
                return await self.client.evalsha(wanted.sha, 1, key, call, *args)
            except exceptions.NoScriptError:  # a new server, or one that was restarted
                return await self.client.eval(wanted.text, 1, key, call, *args)

        try:
            return await self._patiently(send)
        except ForeignKeyError as error:
            raise await naming(error, self.client, key.removesuffix("meta")) from error

    async def command(self, *words: Any, **options: Any) -> Any:
        """A plain command; only such as may be sent twice."""
        return await self._patiently(lambda: self.client.execute_command(*words, **options))

    async def _patiently(self, send: Callable[[], Any]) -> Any:
        tries = 0
        while True:
            try:
                reply = await heedful(send)
            except (exceptions.RedisError, exceptions.RedisClusterException, OSError) as error:
                reason = passing(error, address_of(self.url))
                if monotonic() >= self._deadline:
                    raise FrontierError(
                        f"Redis at {address_of(self.url)} is away ({reason}); what was not committed is "
                        "visited again by the next worker"
                    ) from error
                # A connection that lay idle while the server was restarted is no news; one that waited is.
                if self._away_since is None and (tries or isinstance(error, _SLOW)):
                    self._away_since = monotonic()
                    self.say(f"Redis at {address_of(self.url)} is away ({reason}); waiting for it")
                await asyncio.sleep(min(MAX_PAUSE, 0.05 * 2.0 ** min(tries, 10)) * (0.5 + random.random()))
                tries += 1
                self.resent += 1
            else:
                if self._away_since is not None:
                    seconds = monotonic() - self._away_since
                    self._away_since = None
                    self.say(f"Redis at {address_of(self.url)} is back after {seconds:.0f} s")
                return reply


async def heedful(send: Callable[[], Any]) -> Any:
    """What `send` gives, unless the task was cancelled meanwhile.

    The client loses a cancellation that comes just as its write is through (before Python 3.12,
    asyncio.wait_for does), and a task that works for ever would never end.
    """
    task = asyncio.current_task()
    assert task is not None
    before = task.cancelling()
    try:
        return await send()
    finally:
        if task.cancelling() > before:
            raise asyncio.CancelledError


def passing(error: Exception, address: str) -> str:
    """Why to try again, in a few words. Raises what it is if trying again does not help."""
    text = _IN_SCRIPT.sub("", " ".join(str(error).split()), count=1)[:200]
    if isinstance(error, (exceptions.AuthenticationError, exceptions.NoPermissionError)):
        raise ConfigError(f"Redis at {address} refuses the user or the password: {text}") from error
    if text.startswith(("WRONGPASS", "NOAUTH", "NOPERM")):
        raise ConfigError(f"Redis at {address} refuses the user or the password: {text}") from error
    if "CERTIFICATE_VERIFY_FAILED" in text:
        raise ConfigError(
            f"Redis at {address} has a certificate that is not trusted ({text.partition('failed: ')[2]}); "
            "name the file of its authority in the URL: ?ssl_ca_certs=FILE"
        ) from error
    if isinstance(
        error, (exceptions.ConnectionError, exceptions.TimeoutError, exceptions.ClusterError, OSError)
    ):
        return text or type(error).__name__
    if isinstance(error, (exceptions.MovedError, exceptions.AskError)) and not isinstance(
        error, exceptions.ClusterDownError
    ):
        return f"it is part of a cluster, which redis+cluster:// is for: {text}"
    if isinstance(error, _PASSING) or text.startswith(PASSING):
        return text or type(error).__name__
    if "FELLBACK" in text[:40]:
        raise FellBackError from error
    if "GONE" in text[:40]:
        raise FrontierError(
            "the job is gone from Redis: it was purged, or the server lost its data "
            "(to keep data over a restart: appendonly yes, appendfsync everysec, or save 60 1000)"
        ) from error
    if "non local key" in text:
        raise FrontierError(
            f"the cluster at {address} moves keys of the job one by one, and scripts cannot run meanwhile: "
            "stop the workers of a job before its slots are moved in this way"
        ) from error
    if "WRONGTYPE" in text[:60]:
        raise ForeignKeyError from error
    if "DB index is out of range" in text:
        raise ConfigError(f"Redis at {address} has no database of that number: {text}") from error
    raise FrontierError(f"Redis at {address}: {text}") from error


_SLOW = (exceptions.TimeoutError, TimeoutError)
_UNREACHABLE = (
    exceptions.ConnectionError,
    exceptions.TimeoutError,
    exceptions.ClusterError,
    exceptions.RedisClusterException,
)
_PASSING = (
    exceptions.BusyLoadingError,
    exceptions.ReadOnlyError,
    exceptions.OutOfMemoryError,
    exceptions.ClusterDownError,
    exceptions.TryAgainError,
    exceptions.MasterDownError,
)
