"""Connections to MySQL and MariaDB, and what their errors mean."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Mapping
from urllib.parse import unquote

import aiomysql
import msgspec
import pymysql

from silkline.errors import ConfigError, RowsRefused, SinkAwayError, SinkError
from silkline.outcome import Batch
from silkline.sinks.address import (
    CONNECT_SECONDS,
    STATEMENT_SECONDS,
    Address,
    address_of,
    place_in,
    refuse_unknown,
    split_timeout,
)

FILES = frozenset({"ssl_ca", "ssl_cert", "ssl_key"})
FLAGS = frozenset({"ssl", "ssl_verify_cert", "ssl_verify_identity"})
OPTIONS = FILES | FLAGS | {"unix_socket"}
LOCK_SECONDS = 10
MODE = "STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ZERO_DATE,NO_ZERO_IN_DATE,NO_ENGINE_SUBSTITUTION"

AWAY = frozenset(
    [
        *(0, 3, 20, 1015, 1021, 1030, 1037, 1038, 1041, 1114, 1206),  # hung up, disk, memory, locks
        *(1040, 1129, 1203, 1226, 1637),  # too many connections
        *(1053, 1077, 1317, 1927, 1969, 3024, 3169, 4031),  # ended by an operator or a time limit
        *(1152, 1158, 1159, 1160, 1161, 1184),  # the network
        *(1205, 1213, 1180),  # a lock, a deadlock, a failed commit
        *(1290, 1792, 1836),  # read only
    ]
)
REFUSED = frozenset(
    [
        *(1048, 1062, 1138, 1216, 1217, 1364, 1451, 1452, 1557, 1586, 1761, 3819, 4025),  # constraints
        *(1118, 1153, 1264, 1265, 1292, 1300, 1366, 1406, 1411, 1416, 1690, 3140, 3141, 3988),  # data
        1644,  # a trigger of the user's
    ]
)
ADVICE = {
    1044: "; grant it, or use another user",
    1045: "; check the user and the password in the URL or $MYSQL_PWD",
    1049: "; create it: CREATE DATABASE NAME",
    1142: "; grant it, or use another user",
    1146: "; if it was dropped, run the same command again: it is made anew, for what comes from then on",
    1698: "; check the user and the password in the URL or $MYSQL_PWD",
}


class Server(msgspec.Struct, frozen=True):
    """What the URL says. seconds: that a batch may take."""

    name: str
    address: Address
    host: str
    port: int
    seconds: float
    tls: ssl.SSLContext | None
    socket: str | None

    @property
    def batch(self) -> Batch:
        return self.address.batch

    @property
    def table(self) -> str:
        return self.address.table

    @classmethod
    def of(cls, output: str, *, create: bool) -> Server:
        """Raises ConfigError."""
        address, seconds = split_timeout(address_of(output, create=create), STATEMENT_SECONDS)
        address = msgspec.structs.replace(address, scheme="mysql")
        options = dict(address.options)
        refuse_unknown(address, OPTIONS)
        if not address.path or "/" in address.path:
            raise ConfigError(
                f"output {address.shown!r} names no database: write mysql://user:password@host:3306/database"
            )
        host, port = _place(address)
        tls = _tls(address.shown, options)
        return cls(address.shown, address, host, port, seconds, tls, options.get("unix_socket"))

    async def connected(self) -> tuple[aiomysql.Connection, int]:
        """A connection, and the size of the largest packet that the server takes, in bytes.

        Raises pymysql.MySQLError, OSError and SinkError.
        """
        password = self.address.password
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                connection = await aiomysql.connect(
                    host=self.host,
                    port=self.port,
                    unix_socket=self.socket,
                    user=self.address.user,
                    password=os.environ.get("MYSQL_PWD", "") if password is None else password,
                    db=self.address.path,
                    charset="utf8mb4",
                    autocommit=True,
                    ssl=self.tls,
                    program_name="silkline",
                )
        except RuntimeError as error:  # a package that the login needs
            raise SinkError(f"{self.name}: {error}") from error
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                return connection, await self._prepared(connection)
        except BaseException:
            connection.close()
            raise

    async def _prepared(self, connection: aiomysql.Connection) -> int:
        await connection.query(
            f"SET SESSION sql_mode = '{MODE}', time_zone = '+00:00', "
            f"innodb_lock_wait_timeout = {LOCK_SECONDS}, lock_wait_timeout = {LOCK_SECONDS}"
        )
        async with connection.cursor() as cursor:
            await cursor.execute("SELECT @@max_allowed_packet")
            [packet] = await cursor.fetchone()
            await cursor.execute("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
            cipher = await cursor.fetchone()
        if self.tls is not None and not (cipher and cipher[1]):  # the driver would do without
            raise SinkError(f"{self.name}: the server does not speak TLS")
        return int(packet)


def _place(address: Address) -> tuple[str, int]:
    host, port = place_in(address.shown, address.hosts, 3306)
    return unquote(host).strip("[]") or "127.0.0.1", port


def _tls(shown: str, options: Mapping[str, str]) -> ssl.SSLContext | None:
    flags = {}
    for name in FLAGS & options.keys():
        if options[name] not in ("true", "false"):
            raise ConfigError(f"output {shown!r}: {name} must be true or false")
        flags[name] = options[name] == "true"
    files = {name: options[name] for name in FILES & options.keys()}
    for name, path in files.items():
        if not os.path.isfile(path):
            raise ConfigError(f"output {shown!r}: there is no file {path!r} for {name}")
    if not flags.get("ssl", bool(files or any(flags.values()))):
        return None
    try:
        context = ssl.create_default_context(cafile=files.get("ssl_ca"))
        context.check_hostname = flags.get("ssl_verify_identity", False)
        if not flags.get("ssl_verify_cert", "ssl_ca" in files or context.check_hostname):
            context.verify_mode = ssl.CERT_NONE
        if "ssl_cert" in files:
            context.load_cert_chain(files["ssl_cert"], files.get("ssl_key"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"output {shown!r}: the files of ssl_* cannot be used: {error}") from error
    return context


def meaning_of(name: str, error: Exception) -> SinkError:
    if isinstance(error, SinkError):
        return error
    if isinstance(error, TimeoutError):
        return SinkAwayError(f"{name} does not answer")
    cause = error.__cause__
    if isinstance(error, ssl.SSLCertVerificationError) or isinstance(cause, ssl.SSLCertVerificationError):
        return SinkError(f"{name}: {cause or error}")
    if isinstance(error, EOFError) or isinstance(cause, EOFError):  # of a read that came to its end
        return SinkAwayError(f"{name} is away: it has closed the connection")
    if not isinstance(error, pymysql.MySQLError):
        return SinkAwayError(f"{name} is away: {error}")
    code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    line = _line(error)
    if code in REFUSED or isinstance(error, (pymysql.DataError, pymysql.IntegrityError)):
        if code == 1048 and "_fingerprint" in line:
            line = "another row has the same value in a unique index of the table"
        return RowsRefused(line)
    if code in AWAY or 2_000 <= code < 3_000:
        return SinkAwayError(f"{name} is away: {line if cause is None else cause}")
    return SinkError(f"{name}: {line}{ADVICE.get(code, '')}")


def _line(error: Exception) -> str:
    line = str(error.args[-1]) if error.args else ""
    return (" ".join(line.split()) or type(error).__name__)[:300]
