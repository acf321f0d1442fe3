"""An item that does not go to every output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class To:
    """`yield To("a.csv", item)`: an item for this output alone, or for those of a tuple. An output is called
    what the crawl is given as such; a sink of your own by its name."""

    outputs: str | tuple[str, ...]
    item: Any

    def __post_init__(self) -> None:
        given = isinstance(self.outputs, str | tuple | list) and self.names
        if not given or not all(isinstance(name, str) for name in self.names):
            raise TypeError(f"To({self.outputs!r}, ...): name an output, as in To('a.csv', item)")

    @property
    def names(self) -> tuple[str, ...]:
        return (self.outputs,) if isinstance(self.outputs, str) else tuple(self.outputs)
