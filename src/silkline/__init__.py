"""silkline: a distributed, asynchronous web crawler that can be killed at any instant and loses nothing."""

from silkline.version import __version__

__all__ = ["__version__"]
