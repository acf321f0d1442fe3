"""Keys of a job that another program has put something else into."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from redis import exceptions

from silkline.errors import JobError

KINDS = {
    "meta": "hash",
    "config": "hash",
    "stats": "hash",
    "workers": "hash",
    "task:wait": "list",
    "task:dead": "list",
    "url:done": "set",
}
"""What the keys are that other programs may know, by their names behind a partition's prefix."""

REMEDY = "remove it, or choose another --job, or another database of the server"


class ForeignKeyError(JobError):
    """A key of the job is no more of its type. Which one it is, Redis does not say."""

    def __init__(self, key: str = "a key of the job", why: str = "") -> None:
        super().__init__(f"{key} is used by another program, for something else{why}; {REMEDY}")


async def naming(error: ForeignKeyError, client: Any, prefix: str) -> ForeignKeyError:
    """The same error with the key's name, where it is one that other programs know."""
    with suppress(exceptions.RedisError, OSError):  # away just now: then it goes without
        for name, kind in KINDS.items():
            found = await client.type(prefix + name)
            found = found.decode() if isinstance(found, bytes) else str(found)
            if found not in (kind, "none"):
                return ForeignKeyError(f"the key {prefix + name}", f" (it is a {found}, and not a {kind})")
    return error
