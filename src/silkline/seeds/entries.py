"""From what stands in a file or an iterable to requests."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import Any

import msgspec

from silkline.errors import BadUrlError, TaskError
from silkline.header import fault_of
from silkline.request import DEFAULT_LABEL, Request, request_from_task
from silkline.seeds.source import Refusals
from silkline.url import check

BATCH = 1_000


class EntryReader:
    """Reads entries: text with a URL or a JSON task, and Requests.

    labels: what an entry may have as its label, None for any.
    """

    def __init__(self, labels: Collection[str] | None, refusals: Refusals) -> None:
        self._labels = labels
        self._refusals = refusals

    def batch(self, entries: Iterable[Any], where: str, before: int) -> list[Request]:
        """The valid requests among `entries`, which come after the first `before` ones; the others are
        refused at `where` and their number."""
        batch = []
        for number, entry in enumerate(entries, before + 1):
            try:
                if isinstance(entry, str):
                    if says_nothing(text := entry.strip()):
                        continue
                    request = request_from_task(text) if text[0] == "{" else Request(check(text))
                else:
                    request = checked(entry)
                if self._labels is not None and request.label not in self._labels:
                    raise TaskError(unknown_label(request.label, self._labels))
                batch.append(request)
            except (BadUrlError, TaskError) as error:
                self._refusals.add(f"{where}{number}", error)
        return batch


class IterableSource:
    """An iterable of URLs and Requests, read in batches: see SeedSource."""

    def __init__(self, iterable: Iterable[Any], labels: Collection[str] | None = None) -> None:
        self._iterable = iterable
        self._refusals = Refusals()
        self._reader = EntryReader(labels, self._refusals)

    @property
    def invalid(self) -> int:
        return self._refusals.invalid

    @property
    def reasons(self) -> tuple[str, ...]:
        return self._refusals.reasons

    def __iter__(self) -> Iterator[list[Request]]:
        entries, number = iter(self._iterable), 0
        while some := list(islice(entries, BATCH)):
            if batch := self._reader.batch(some, "seed ", number):
                yield batch
            number += len(some)


def says_nothing(line: str) -> bool:
    """Whether a line, without the white space around it, is empty or a comment."""
    return not line or line[0] == "#"


def checked(entry: object) -> Request:
    """A Request with a URL that can be fetched. Raises BadUrlError, and TaskError for what is no Request or
    has headers that are the client's own."""
    if isinstance(entry, Request):
        url = check(entry.url)
        if fault := fault_of(entry.headers):
            raise TaskError(f"the request for {url[:200]} cannot be sent: {fault}")
        return entry if url == entry.url else msgspec.structs.replace(entry, url=url)
    if isinstance(entry, UnicodeDecodeError):
        raise TaskError("the line is not UTF-8 text")
    raise TaskError(f"{str(entry)[:200]!r} is neither a URL nor a Request")


def unknown_label(label: str, labels: Collection[str]) -> str:
    """Why a request with this label is refused where there are handlers for those."""
    known = ", ".join(sorted(labels))
    if label == DEFAULT_LABEL:
        return f"no handler without a label; there are: {known}"
    return f"no handler for the label {label!r}; there are: {known}"
