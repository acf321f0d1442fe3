"""Collections of documents in memory, every change appended to a file first: a kill takes nothing along."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import bson

Document = dict[str, Any]

LARGEST = 16 * 1024 * 1024
DEEPEST = 100


class Failure(Exception):
    """What a server answers to a command or to one write of it."""

    def __init__(self, code: int, message: str, **more: Any) -> None:
        super().__init__(message)
        self.reply = {"code": code, "errmsg": message, **more}


COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": lambda a, b: a == b,
    "$ne": lambda a, b: a != b,
    "$gt": lambda a, b: comparable(a, b) and a > b,
    "$gte": lambda a, b: comparable(a, b) and a >= b,
    "$lt": lambda a, b: comparable(a, b) and a < b,
    "$lte": lambda a, b: comparable(a, b) and a <= b,
    "$in": lambda a, b: a in b,
    "$exists": lambda a, b: (a is not None) == bool(b),
}


def comparable(a: Any, b: Any) -> bool:
    """A comparison only finds values of the same kind of type."""
    numbers = (int, float)
    return type(a) is type(b) or (isinstance(a, numbers) and isinstance(b, numbers))


def matches(document: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    for name, condition in wanted.items():
        value = document.get(name)
        if isinstance(condition, dict) and condition and all(op[:1] == "$" for op in condition):
            if not all(COMPARISONS[op](value, operand) for op, operand in condition.items()):
                return False
        elif value != condition:
            return False
    return True


def check(document: Document) -> None:
    if len(bson.encode(document)) > LARGEST:
        raise Failure(10334, "BSONObj size: is invalid. Size must be between 0 and 16793600(16MB)")
    for name in document:
        if name[:1] == "$":
            raise Failure(
                52,
                f"The dollar ($) prefixed field '{name}' in '{name}' is not allowed in the context of an "
                "update's replacement document.",
            )
    if depth_of(document) > DEEPEST:
        raise Failure(15, f"Document exceeds maximum nested object depth of {DEEPEST}")


def depth_of(value: Any) -> int:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if parts is None else 1 + max(map(depth_of, parts), default=0)


class Collection:
    def __init__(self) -> None:
        self.documents: dict[Any, Document] = {}
        self.unique: dict[str, str] = {}
        """Of indexes: the name, and the field."""
        self.validator: Document = {}

    def found(self, wanted: Document) -> Iterator[Document]:
        exact = wanted.get("_id")
        if exact is not None and not isinstance(exact, dict):
            near = [self.documents[exact]] if exact in self.documents else []
        else:
            near = list(self.documents.values())
        return (document for document in near if matches(document, wanted))

    def refuse(self, document: Document) -> None:
        check(document)
        if not matches(document, self.validator):
            raise Failure(121, "Document failed validation", errInfo={"failingDocumentId": document["_id"]})
        for name, field in self.unique.items():
            for other in self.found({field: document.get(field)}):
                if other["_id"] != document["_id"]:
                    raise Failure(
                        11000,
                        f"E11000 duplicate key error collection: index: {name} dup key: {{ {field}: ... }}",
                        keyPattern={field: 1},
                    )


class Store:
    """Every collection by "database.name". `lock` is held for each command."""

    def __init__(self, path: Path) -> None:
        self.lock = threading.Lock()
        self.collections: dict[str, Collection] = {}
        self._path = path
        if path.exists():
            self._replay()
        self._log = path.open("ab", buffering=0)

    def collection(self, name: str) -> Collection:
        if name not in self.collections:
            self._log_change({"make": name})
            self.collections[name] = Collection()
        return self.collections[name]

    def put(self, name: str, document: Document) -> None:
        """Add or replace. Raises Failure."""
        collection = self.collection(name)
        collection.refuse(document)
        self._log_change({"put": name, "document": document})
        collection.documents[document["_id"]] = document

    def remove(self, name: str, identity: Any) -> None:
        self._log_change({"remove": name, "id": identity})
        del self.collections[name].documents[identity]

    def drop(self, name: str) -> None:
        self._log_change({"drop": name})
        self.collections.pop(name, None)

    def rule(
        self, name: str, *, unique: dict[str, str] | None = None, validator: Document | None = None
    ) -> None:
        """What the collection's documents must comply with from now on."""
        collection = self.collection(name)
        collection.unique |= unique or {}
        collection.validator |= validator or {}
        self._log_change({"rule": name, "unique": collection.unique, "validator": collection.validator})

    def _log_change(self, change: Document) -> None:
        self._log.write(bson.encode(change))

    def _replay(self) -> None:
        data = self._path.read_bytes()
        at = 0
        while len(data) - at >= 4:
            size = int.from_bytes(data[at : at + 4], "little")
            if at + size > len(data):
                break
            self._apply(bson.decode(data[at : at + size]))
            at += size
        os.truncate(self._path, at)

    def _apply(self, change: Document) -> None:
        (verb, name), *_ = change.items()
        if verb == "drop":
            self.collections.pop(name, None)
            return
        collection = self.collections.setdefault(name, Collection())
        match verb:
            case "put":
                collection.documents[change["document"]["_id"]] = change["document"]
            case "remove":
                del collection.documents[change["id"]]
            case "rule":
                collection.unique, collection.validator = change["unique"], change["validator"]
