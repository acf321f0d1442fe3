"""A place for objects: a bucket or container of S3, Google Cloud Storage or Azure, and a prefix in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import obstore
from obstore import exceptions
from obstore.store import from_url

from silkline.errors import ConfigError, SinkAwayError, SinkError

DENIED = (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError)
STATUS = re.compile(r"status code: (\d{3})")
METADATA = "169.254."
PIECE = 4 * 1024 * 1024
PATIENCE = timedelta(seconds=20)
"""For how long a request is tried again."""


class Bucket:
    """Objects by their names under the URL's path.

    options: of the store, such as `endpoint` and `region`; what is not said comes from the environment, as
    for other programs (AWS_ACCESS_KEY_ID and the like). shown: how the output is called in messages.
    """

    def __init__(self, url: str, options: Mapping[str, str], shown: str) -> None:
        """Raises ConfigError for options that the store has not."""
        self._shown = shown
        connect: Any = from_url
        plain = options.get("endpoint", options.get("aws_endpoint", "")).startswith("http://")
        try:
            self._store = connect(
                url,
                config=dict(options),
                client_options={"timeout": "60s", "connect_timeout": "10s", "allow_http": plain},
                retry_config={"max_retries": 6, "retry_timeout": PATIENCE},
            )
        except exceptions.UnknownConfigurationKeyError as error:
            known = "part_bytes, part_seconds, endpoint, region and the others of obstore"
            raise ConfigError(f"output {shown!r}: {_line(error).rstrip('.')}; there are: {known}") from error
        except (exceptions.BaseError, ValueError) as error:
            raise ConfigError(f"output {shown!r} cannot be used: {_line(error)}") from error

    def names(self, start: str) -> list[str]:
        """The names that begin with `start`."""
        with self._told():
            pages = obstore.list(self._store)
            return [found["path"] for page in pages for found in page if found["path"].startswith(start)]

    def put(self, name: str, content: bytes | Path) -> None:
        """Whole or not at all; in several parts where it is large."""
        with self._told():
            obstore.put(self._store, name, content)

    def get(self, name: str) -> bytes | None:
        """None where there is no such object."""
        with self._told():
            try:
                return bytes(obstore.get(self._store, name).bytes())
            except (exceptions.NotFoundError, FileNotFoundError):
                return None

    def pieces(self, name: str) -> Iterator[bytes]:
        """An object's content, a few megabytes at a time. Raises SinkError where there is none."""
        with self._told():
            for piece in obstore.get(self._store, name).stream(min_chunk_size=PIECE):
                yield bytes(piece)

    def delete(self, name: str) -> None:
        with self._told():
            obstore.delete(self._store, name)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (exceptions.BaseError, OSError) as error:
            status = STATUS.search(str(error))  # a listing has no classes for these
            code = status[1] if status else ""
            if METADATA in str(error):  # where a store looks for keys when it has none
                raise SinkError(
                    f"{self._shown}: no keys given: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or what "
                    "the store has in their place"
                ) from error
            if code in ("401", "403") or isinstance(error, DENIED):
                raise SinkError(
                    f"{self._shown} refuses access: {_line(error)}; check the keys and what they allow"
                ) from error
            if code == "404" or isinstance(error, (exceptions.NotFoundError, FileNotFoundError)):
                raise SinkError(
                    f"{self._shown} is not there: {_line(error)}; make the bucket first"
                ) from error
            raise SinkAwayError(f"{self._shown} is away: {_line(error)}") from error


def _line(error: BaseException) -> str:
    text = str(error).partition("Debug source:")[0]
    return " ".join(text.split())[:300] or type(error).__name__
