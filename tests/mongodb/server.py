"""A small MongoDB server, for drivers of the real one.

    python -m tests.mongodb.server PORT FILE [USER PASSWORD]

It stands alone (no replica set), knows the commands that a sink needs, and keeps what it has confirmed over
a SIGKILL. `configureFailPoint` with failCommand makes it fail as it is told to, as with a real server.
"""

from __future__ import annotations

import socketserver
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.mongodb.scram import Login
from tests.mongodb.store import Document, Failure, Store
from tests.mongodb.wire import Connection

BATCH = 101


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, port: int, store: Store, user: str = "", password: str = "") -> None:
        super().__init__(("127.0.0.1", port), Client)
        self.store = store
        self.user, self.password = user, password
        self.cursors: dict[int, list[Document]] = {}
        self.fail_point: Document = {}
        self.failures_left = 0
        self.numbers = iter(range(1, sys.maxsize))

    def fails(self, name: str) -> Document | None:
        """How the fail point wants this command to fail; None where it does not."""
        if self.failures_left and name in self.fail_point.get("failCommands", ()):
            self.failures_left -= 1
            return self.fail_point
        return None


class Client(socketserver.BaseRequestHandler):
    server: Server

    def handle(self) -> None:
        connection = Connection(self.request)
        login = Login(self.server.user, self.server.password)
        try:
            while (received := connection.receive()) is not None:
                number, opcode, command, wants_reply = received
                name = next(iter(command))
                failing = self.server.fails(name)
                if failing and failing.get("closeConnection"):
                    return
                try:
                    if failing and "errorCode" in failing:
                        raise Failure(
                            failing["errorCode"], f"Failing command via 'failCommand' failpoint: {name}"
                        )
                    reply = {"ok": 1.0} | self.run(name, command, login)
                except Failure as failure:
                    reply = {"ok": 0.0} | failure.reply
                if wants_reply:
                    connection.answer(number, opcode, reply)
        except OSError:
            pass

    def run(self, name: str, command: Document, login: Login) -> Document:
        match name:
            case "hello" | "isMaster" | "ismaster":
                mechanisms = (
                    {"saslSupportedMechs": ["SCRAM-SHA-256"]} if "saslSupportedMechs" in command else {}
                )
                return greeting() | mechanisms
            case "saslStart":
                return login.start(command)
            case "saslContinue":
                return login.go_on(command)
            case "ping" | "endSessions":
                return {}
        if not login.done:
            raise Failure(13, f"Command {name} requires authentication", codeName="Unauthorized")
        run = COMMANDS.get(name)
        if run is None:
            raise Failure(59, f"no such command: '{name}'", codeName="CommandNotFound")
        with self.server.store.lock:
            return run(self.server, f"{command['$db']}.{command[name]}", command)


def greeting() -> Document:
    return {
        "ismaster": True,
        "isWritablePrimary": True,
        "helloOk": True,
        "maxBsonObjectSize": 16 * 1024 * 1024,
        "maxMessageSizeBytes": 48_000_000,
        "maxWriteBatchSize": 100_000,
        "logicalSessionTimeoutMinutes": 30,
        "minWireVersion": 0,
        "maxWireVersion": 21,
        "readOnly": False,
    }


def insert(server: Server, where: str, command: Document) -> Document:
    def add(index: int, document: Document) -> int:
        if document["_id"] in server.store.collection(where).documents:
            raise Failure(11000, "E11000 duplicate key error index: _id_ dup key", keyPattern={"_id": 1})
        server.store.put(where, document)
        return 1

    count, errors = each(command["documents"], command, add)
    return {"n": count} | errors


def update(server: Server, where: str, command: Document) -> Document:
    """Replacements only; with upsert the document is made of the condition on `_id` and the replacement."""
    upserted = []

    def replace(index: int, change: Document) -> int:
        new: Document = change["u"]
        for old in server.store.collection(where).found(change["q"]):
            server.store.put(where, {"_id": old["_id"], **new})
            return 1
        if not change.get("upsert"):
            return 0
        made = {"_id": change["q"].get("_id"), **new}
        server.store.put(where, made)
        upserted.append({"index": index, "_id": made["_id"]})
        return 1

    count, errors = each(command["updates"], command, replace)
    return (
        {"n": count, "nModified": count - len(upserted)}
        | ({"upserted": upserted} if upserted else {})
        | errors
    )


def delete(server: Server, where: str, command: Document) -> Document:
    def remove(index: int, removal: Document) -> int:
        found = list(server.store.collection(where).found(removal["q"]))
        found = found[: removal["limit"] or None]
        for document in found:
            server.store.remove(where, document["_id"])
        return len(found)

    count, errors = each(command["deletes"], command, remove)
    return {"n": count} | errors


def each(
    writes: list[Document], command: Document, do: Callable[[int, Document], int]
) -> tuple[int, Document]:
    count, errors = 0, []
    for index, write in enumerate(writes):
        try:
            count += do(index, write)
        except Failure as failure:
            errors.append({"index": index, **failure.reply})
            if command.get("ordered", True):
                break
    return count, {"writeErrors": errors} if errors else {}


def find(server: Server, where: str, command: Document) -> Document:
    collection = server.store.collections.get(where)
    found = [] if collection is None else list(collection.found(command.get("filter", {})))
    for name, direction in reversed(command.get("sort", {}).items()):
        found.sort(key=lambda document: document[name], reverse=direction < 0)
    found = found[: command.get("limit") or None]
    return cursor(server, where, found, command.get("batchSize", BATCH), "firstBatch")


def get_more(server: Server, where: str, command: Document) -> Document:
    rest = server.cursors.pop(command["getMore"], None)
    if rest is None:
        raise Failure(43, f"cursor id {command['getMore']} not found")
    where = f"{command['$db']}.{command['collection']}"
    return cursor(server, where, rest, command.get("batchSize", BATCH), "nextBatch")


def cursor(server: Server, where: str, found: list[Document], size: int, batch: str) -> Document:
    number = 0
    if len(found) > size:
        number = next(server.numbers)
        server.cursors[number] = found[size:]
    return {"cursor": {"id": number, "ns": where, batch: found[:size]}}


def kill_cursors(server: Server, where: str, command: Document) -> Document:
    killed = [number for number in command["cursors"] if server.cursors.pop(number, None) is not None]
    return {"cursorsKilled": killed}


def list_collections(server: Server, where: str, command: Document) -> Document:
    names = [name.partition(".") for name in server.store.collections]
    found = [
        {"name": name, "type": "collection"} for database, _, name in names if database == command["$db"]
    ]
    wanted = command.get("filter", {}).get("name")
    found = [each for each in found if wanted in (None, each["name"])]
    return cursor(server, f"{command['$db']}.$cmd.listCollections", found, 1000, "firstBatch")


def create(server: Server, where: str, command: Document) -> Document:
    if where in server.store.collections:
        raise Failure(48, f"Collection already exists. NS: {where}")
    server.store.rule(where, validator=command.get("validator", {}))
    return {}


def create_indexes(server: Server, where: str, command: Document) -> Document:
    unique = {index["name"]: next(iter(index["key"])) for index in command["indexes"] if index.get("unique")}
    server.store.rule(where, unique=unique)
    return {}


def drop(server: Server, where: str, command: Document) -> Document:
    server.store.drop(where)
    return {}


def configure_fail_point(server: Server, where: str, command: Document) -> Document:
    mode: Any = command["mode"]
    server.fail_point = command.get("data", {})
    server.failures_left = 0 if mode == "off" else sys.maxsize if mode == "alwaysOn" else mode["times"]
    return {}


COMMANDS: dict[str, Callable[[Server, str, Document], Document]] = {
    "configureFailPoint": configure_fail_point,
    "create": create,
    "createIndexes": create_indexes,
    "delete": delete,
    "drop": drop,
    "find": find,
    "getMore": get_more,
    "insert": insert,
    "killCursors": kill_cursors,
    "listCollections": list_collections,
    "update": update,
}


def main(port: str, path: str, *login: str) -> None:
    threading.stack_size(256 * 1024)
    with Server(int(port), Store(Path(path)), *login) as server:
        server.serve_forever(poll_interval=60)


if __name__ == "__main__":
    main(*sys.argv[1:])
