"""A crawl in small, run as a process of its own by `live`, or by the lives of `killer.py`.

The store is a JSON file under a lock: the next page and the sinks' positions, replaced in one step. Every
commit takes three pages and delivers their items; nothing else survives the process. Several
drivers may share a folder, as the processes of one crawl do.
"""

from __future__ import annotations

import fcntl
import json
import os
import resource
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

from silkline.errors import SilklineError
from silkline.outcome import Done as Finished
from silkline.outcome import Item, Lease, Outcome
from silkline.protocols import Deliver, Sink
from silkline.request import Request
from silkline.sinks.choose import deliver_to, finish_all, sinks_for
from silkline.sinks.faultpoint import reach
from silkline.sinks.format import Format
from silkline.sinks.record import record_of


class Store:
    def __init__(self, folder: Path) -> None:
        self._state = folder / "state.json"
        self._lock = folder / "lock"

    @contextmanager
    def locked(self) -> Iterator[dict]:
        with self._lock.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            state = (
                json.loads(self._state.read_text()) if self._state.exists() else {"page": 0, "positions": {}}
            )
            yield state
            fresh = self._state.with_suffix(".fresh")
            fresh.write_text(json.dumps(state))
            os.replace(fresh, self._state)


def main(folder: Path, pages: int, outputs: list[str], *, group: int = 3, pause: float = 0.0) -> None:
    """group: pages of a commit. pause: seconds between what the outputs do and its commit."""
    store = Store(folder)
    sinks = sinks_for([name for name in outputs if name != "--excel"], Format(excel="--excel" in outputs))
    with store.locked() as state:
        state["positions"] = opening(sinks)((), state["positions"])
    more = True
    while more:
        with store.locked() as state:
            taken = range(state["page"], min(state["page"] + group, pages))
            outcomes = [outcome(page, sinks) for page in taken]
            state["positions"] = deliver_to(sinks)(outcomes, state["positions"])
            state["page"] += len(taken)
            time.sleep(pause)
            more = state["page"] < pages
    with store.locked() as state:
        state["positions"] = finish_all(sinks)((), state["positions"])
        time.sleep(pause)
    for sink in sinks:
        sink.close()


def opening(sinks: tuple[Sink, ...]) -> Deliver:
    def deliver(_, positions):
        for sink in sinks:
            sink.open(positions.get(sink.name))
        return {sink.name: sink.write((), positions.get(sink.name)) for sink in sinks}

    return deliver


def outcome(page: int, sinks: tuple[Sink, ...]) -> Outcome:
    """Two items a page; every fifth page brings a column that was not there before."""
    lease = Lease(Request(f"http://127.0.0.1/{page}"), token=page, fingerprint=page, host="h")
    items = []
    for index in (0, 1):
        record = record_of(
            {"page": page, "index": index, "text": f'x,"y"\n{page}', "sum": "=1+1"}
            | ({f"n{page}": 1} if page % 5 == 4 else {})
        )
        items.append(Item(page, index, {sink.name: sink.encode(record) for sink in sinks}))
    return Outcome(lease, Finished(), tuple(items))


def live(
    errors: Connection,
    folder: Path,
    pages: int,
    outputs: list[str],
    fault: Mapping[str, str],
    max_bytes: int,
) -> None:
    """The whole life of a process. errors: where its stderr goes. max_bytes: of every file it may write."""
    os.dup2(errors.fileno(), 2)
    resource.setrlimit(resource.RLIMIT_FSIZE, (max_bytes, resource.RLIM_INFINITY))
    reach.arm(fault)
    try:
        main(folder, pages, outputs)
    except SilklineError as error:
        sys.exit(f"{type(error).__name__}: {error}")
