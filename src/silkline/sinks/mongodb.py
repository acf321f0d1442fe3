"""A MongoDB collection: one document per item, its identity as `_id`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
from pymongo import AsyncMongoClient, DeleteMany, ReplaceOne
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.errors import PyMongoError
from pymongo.uri_parser import validate_options

from silkline.errors import ConfigError, RowsRefused
from silkline.outcome import MASK, Item
from silkline.sinks.address import Address, address_of, refuse_unknown, split_timeout
from silkline.sinks.failing import opening
from silkline.sinks.keyed import OwnSink
from silkline.sinks.mongodb_document import OPTIONS, Unstorable, body_of, documents_of, size_of
from silkline.sinks.mongodb_errors import met_another, one_line, told

DEFAULTS = {
    "appName": "silkline",
    "connectTimeoutMS": "10000",
    "journal": "true",
    "serverSelectionTimeoutMS": "3000",
    "w": "majority",
}
"""What holds where the URL says nothing. The driver's own would wait for ever for a server that hangs."""

ANSWER_SECONDS = 60.0
"""Of each slice of a batch; `?timeout=` says otherwise."""
SLICE = 1_000
"""Documents that are prepared without a pause for the event loop."""
LARGEST = 16 * 1024 * 1024
TRIES = 5
UNKNOWN = re.compile(r"Unknown option: (\w+)")
"""What the driver says of an option of the URL."""
MORE = ", and those of PyMongo"


class MongoSink(OwnSink):
    """`mongodb://user:password@host[:port],…/database?collection=items`, or `mongodb+srv://`; further options
    are the driver's.

    A document has the item's fields beside `_id` (the item's identity), `_fingerprint` and `_index` (null for
    items with a key of their own). A write counts once a majority of the servers has it in its journal.
    """

    def __init__(self, output: str, *, create: bool = True) -> None:
        address, seconds = split_timeout(address_of(output, create=create, noun="collection"), ANSWER_SECONDS)
        _check(address)
        super().__init__(address.shown, address.batch)
        self._address = address
        self._url = _url(address, seconds)
        self._client: AsyncMongoClient[dict[str, Any]] | None = None

    async def open(self) -> None:
        if self._client is None:
            try:
                self._client = AsyncMongoClient(self._url)
            except (PyMongoError, ValueError) as error:
                raise ConfigError(f"output {self.name!r}: {one_line(error)}") from error
        database = self._client[self._address.path]
        with opening(), told(self.name):
            await database.command("ping")
            if not self._address.create:
                wanted = {"name": self._address.table}
                if not await database.list_collection_names(filter=wanted, authorizedCollections=True):
                    raise ConfigError(
                        f"output {self.name!r}: there is no collection {self._address.table!r}: make it "
                        f"with db.createCollection({self._address.table!r}), or leave out --no-create"
                    )

    def encode(self, fields: Mapping[str, Any]) -> dict[str, Any] | Unstorable:
        return body_of(fields)

    async def write(self, items: Sequence[Item]) -> None:
        """Replaced in slices, each in any order: after a failure some of the items may be in already."""
        for item in items:
            if type(reason := item.data[self.name]) is Unstorable:
                raise RowsRefused(reason)
        for start in range(0, len(items), SLICE):
            await self._replace(items[start : start + SLICE])

    async def trim(self, pages: Mapping[int, int]) -> None:
        """A page's documents stand together in the index of `_id`, by their identities."""
        removals = []
        for page, index in pages.items():
            prefix = f"{page & MASK:016x}"
            span = {"$gte": f"{prefix}-", "$lt": f"{prefix}."}  # the dot follows the hyphen
            removals.append(DeleteMany({"_id": span, "_index": {"$gte": index}}))
        for start in range(0, len(removals), SLICE):
            with told(self.name):
                await self._collection.bulk_write(removals[start : start + SLICE], ordered=False)

    async def close(self) -> None:
        if self._client is not None:
            client, self._client = self._client, None
            await client.close()

    @property
    def _collection(self) -> AsyncCollection[dict[str, Any]]:
        assert self._client is not None, "open() comes first"
        return self._client[self._address.path].get_collection(self._address.table, OPTIONS)

    async def _replace(self, items: Sequence[Item]) -> None:
        replacements: list[ReplaceOne[Any]] = []
        for item, document in zip(items, documents_of(items, self.name), strict=True):
            if not 0 < item.size < LARGEST // 4 and (size := size_of(document)) > LARGEST:
                raise RowsRefused(
                    f"the document takes {size / 2**20:.1f} MB, and MongoDB holds 16 MB at most"
                )
            replacements.append(ReplaceOne({"_id": document["_id"]}, document, upsert=True))
        for left in reversed(range(TRIES)):
            try:
                with told(self.name):
                    await self._collection.bulk_write(replacements, ordered=False)
                return
            except RowsRefused as error:
                # Two workers who both found no such document: the second one replaces the first one's.
                if not (left and met_another(error)):
                    raise


def _check(address: Address) -> None:
    table = address.table
    shown = f"output {address.shown!r}"
    if not address.path or any(char in address.path for char in '/\\. "$\0'):
        raise ConfigError(f"{shown}: name the database, as in mongodb://host/shop?collection=items")
    if not table or table.startswith((".", "system.")) or table.endswith(".") or {"$", "\0"} & set(table):
        raise ConfigError(f"{shown}: collection={table!r} can be no collection's name")
    if not address.hosts:
        raise ConfigError(f"{shown}: name the server, as in mongodb://localhost/{address.path}")


def _url(address: Address, seconds: float) -> str:
    given = {name.lower() for name in address.options}
    options = {**DEFAULTS, "socketTimeoutMS": f"{seconds * 1000:.0f}"}
    options = {name: value for name, value in options.items() if name.lower() not in given}
    options |= address.options
    try:
        validate_options(options)
    except (PyMongoError, ValueError, TypeError) as error:
        if unknown := UNKNOWN.match(str(error)):
            refuse_unknown(msgspec.structs.replace(address, options={unknown[1]: ""}), (), MORE)
        raise ConfigError(f"output {address.shown!r}: {one_line(error)}") from error
    if options.get("w") == "0":
        raise ConfigError(f"output {address.shown!r}: w=0 would lose items without notice; leave it out")
    login = ""
    if address.user is not None:
        secret = "" if address.password is None else f":{quote(address.password, safe='')}"
        login = f"{quote(address.user, safe='')}{secret}@"
    return f"{address.scheme}://{login}{address.hosts}/{quote(address.path)}?{urlencode(options)}"
