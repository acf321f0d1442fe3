"""MongoDB servers for tests: small ones of our own in a process each, or the one that SILKLINE_TEST_MONGODB
names, as mongodb://host:port."""

from __future__ import annotations

import atexit
import os
import time
from functools import cache
from typing import Any

from pymongo import MongoClient
from pymongo.errors import PyMongoError

from tests.processes import ServerProcess

REAL = os.environ.get("SILKLINE_TEST_MONGODB", "").rstrip("/")
"""Read before the tests' environment is cleared. Its database `silkline_test` is used."""
DATABASE = "silkline_test"


class MongoServer(ServerProcess):
    kind = "mongodb"

    @property
    def url(self) -> str:
        return f"mongodb://127.0.0.1:{self.port}"

    def start(self) -> MongoServer:
        process = self.launch()
        deadline = time.monotonic() + 30
        with MongoClient[dict[str, Any]](self.url, serverSelectionTimeoutMS=100) as client:
            while True:
                try:
                    client.admin.command("ping")
                    return self
                except PyMongoError:
                    assert process.poll() is None, "the server has ended"
                    assert time.monotonic() < deadline, "the server does not start"


@cache
def shared() -> MongoServer:
    server = MongoServer().start()
    atexit.register(server.remove)
    return server


def any_url() -> str:
    """Of the real server, if there is one, or of one that all tests share."""
    return REAL or shared().url


def documents_in(url: str, collection: str) -> dict[str, dict[str, Any]]:
    """By identity; read with the driver alone."""
    with MongoClient[dict[str, Any]](url, uuidRepresentation="standard", tz_aware=True) as client:
        return {each["_id"]: each for each in client[DATABASE][collection].find({})}


def drop(url: str, collection: str) -> None:
    with MongoClient[dict[str, Any]](url) as client:
        client[DATABASE].drop_collection(collection)
