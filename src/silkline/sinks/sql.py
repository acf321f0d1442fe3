"""What sinks for tables of SQL databases share: the way of a batch, and what an error makes of it."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar

from silkline.errors import RowsRefused, SinkAwayError, SinkError
from silkline.outcome import Batch, Item
from silkline.sinks.columns import Kind, Prepared, prepared
from silkline.sinks.failing import opening
from silkline.sinks.keyed import OwnSink
from silkline.sinks.rows import Rows
from silkline.sinks.table import Column, Places, Table, places_for, records_of

ATTEMPTS = 20
"""To write a batch while other workers change the table."""


class SqlSink(OwnSink, ABC):
    """Items as rows of a table, made and widened as they need it; see OwnSink and `protocols.KeyedSink`.

    A database says how it is connected, looked at, changed and written to. seconds: that a batch may take.
    failures: what its driver raises.
    """

    failures: ClassVar[tuple[type[Exception], ...]] = (OSError,)

    def __init__(self, name: str, batch: Batch, seconds: float) -> None:
        super().__init__(name, batch)
        self._seconds = seconds
        self._known: Table | None = None

    def encode(self, fields: Mapping[str, Any]) -> Prepared:
        return prepared(fields)

    async def open(self) -> None:
        with opening():
            async with self._asked() as connection:
                await self._find(connection)

    async def write(self, items: Sequence[Item]) -> None:
        if not items:
            return
        rows = await Rows.of(items, self.name)
        async with self._asked() as connection:
            for _ in range(ATTEMPTS):
                table = self._known or await self._find(connection)
                places = places_for(rows, table, self._may_widen)
                if not places.fit:
                    await self._alter(connection, table, places)
                elif await self._insert(connection, table, places, await records_of(rows, table, places)):
                    return
        raise SinkAwayError(f"{self.name}: its columns keep changing")

    @abstractmethod
    async def _connected(self) -> Any:
        """The connection, made if there is none."""

    @abstractmethod
    async def _find(self, connection: Any) -> Table:
        """The table, made if there is none and that is allowed. Raises SinkError where it is not usable."""

    @abstractmethod
    async def _alter(self, connection: Any, table: Table, places: Places) -> None:
        """Add the columns that are missing, and widen those that are too narrow."""

    @abstractmethod
    def _may_widen(self, column: Column, kinds: set[Kind]) -> bool: ...

    @abstractmethod
    async def _insert(
        self, connection: Any, table: Table, places: Places, slices: Sequence[Sequence[tuple[Any, ...]]]
    ) -> bool:
        """In one transaction. Returns False where the table has changed meanwhile: nothing was written."""

    @abstractmethod
    async def _rolled_back(self) -> bool:
        """Whether the connection can be used again."""

    @abstractmethod
    async def _hang_up(self) -> None: ...

    @abstractmethod
    def _meaning(self, error: Exception) -> SinkError: ...

    @asynccontextmanager
    async def _asked(self) -> AsyncIterator[Any]:
        """A connection, and errors as what they mean. A failed transaction is rolled back, or hung up on."""
        expected: tuple[type[Exception], ...] = (*self.failures, RowsRefused)
        try:
            connection = await self._connected()
            async with asyncio.timeout(self._seconds):
                yield connection
        except expected as error:
            meaning = self._meaning(error)
            if not isinstance(meaning, RowsRefused) or not await self._rolled_back():
                await self._hang_up()
            if meaning is error:
                raise
            raise meaning from error
        except BaseException:
            await self._hang_up()
            raise
