"""What an error of the driver of MySQL and MariaDB means, in words."""

from __future__ import annotations

import asyncio

import pymysql
import pytest

from silkline.errors import SinkAwayError
from silkline.sinks.mysql_connection import Server, meaning_of


@pytest.mark.parametrize("url", ["mysql", "mariadb"])
async def test_a_server_that_hangs_up_has_closed_the_connection(url: str) -> None:
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    listening = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        server = Server.of(f"{url}://u:p@127.0.0.1:{port}/shop", create=True)
        with pytest.raises((SinkAwayError, pymysql.MySQLError, EOFError)) as raised:
            await server.connected()
    told = meaning_of("shop", raised.value)
    assert isinstance(told, SinkAwayError)
    assert str(told).endswith("is away: it has closed the connection")
