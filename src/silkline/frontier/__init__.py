"""Where requests live: one implementation of `protocols.Frontier` per store."""

from silkline.frontier.memory import MemoryFrontier
from silkline.frontier.open import frontier_from, remove_store
from silkline.frontier.sqlite import SqliteFrontier

__all__ = ["MemoryFrontier", "SqliteFrontier", "frontier_from", "remove_store"]
