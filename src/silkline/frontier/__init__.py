"""Where requests live: one implementation of `protocols.Frontier` per store."""

from silkline.frontier.memory import MemoryFrontier

__all__ = ["MemoryFrontier"]
