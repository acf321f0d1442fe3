"""Several worker processes on one machine: forked before anything is open, watched over pipes.

A worker sends its snapshots twice a second, and one ending. It obeys SIGTERM from the parent (once:
wind down, twice: stop now) and ignores SIGINT, which a terminal sends to the whole group: only the
parent counts the user's Ctrl-C. A worker whose parent is gone finds its pipe broken and winds down.
A worker that dies is not replaced: the others take its pages over as soon as the kernel drops its locks.
"""

from __future__ import annotations

import multiprocessing
import select
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Any

import msgspec

from silkline.errors import ConfigError, FatalError, SilklineError
from silkline.observe.fields import NO_PAST, Past
from silkline.observe.snapshot import Snapshot, merge

TICK = 0.25
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Ending(msgspec.Struct, frozen=True):
    """How one worker ended. error: its one line, with stop code 2 (configuration) or 3 (fatal).

    parts: by output, the part files that all workers of the job have written; empty where there are none.
    past: what the items of earlier runs held.
    """

    reason: str
    snapshot: Snapshot | None = None
    dead: Mapping[str, int] = {}
    dead_items: Mapping[str, int] = {}
    parts: Mapping[str, tuple[str, ...]] = {}
    error: str = ""
    code: int = 0
    past: Past = NO_PAST


class Seat(msgspec.Struct, frozen=True):
    """A worker's place. index 0 reads the seeds; `publish` raises OSError when the parent is gone."""

    index: int
    publish: Callable[[Snapshot], None]
    seeding: Callable[[], bool]
    seeded: Callable[[], None]


Body = Callable[[Seat], Ending]
_Message = Snapshot | Ending


class _Frame(msgspec.Struct):
    snapshot: Snapshot | None = None
    ending: Ending | None = None


class Crew:
    """Runs `body` in `count` processes; `watch` gets the merged snapshot."""

    def __init__(self, count: int, body: Body, watch: Callable[[Snapshot], None]) -> None:
        self._count = count
        self._body = body
        self._watch = watch
        self._workers: dict[Connection, BaseProcess] = {}
        self._latest: dict[Connection, Snapshot] = {}
        self._endings: list[Ending] = []
        self._killed: list[str] = []
        self._interrupted = False

    def run(self) -> list[Ending]:
        """Until every worker has ended, oldest ending first. Raises what stopped a worker."""
        context = multiprocessing.get_context("fork")
        # Without a lock: a worker that is killed while it holds one would stop all the others for ever.
        seeding = context.RawValue("b", 1)
        # A signal in the middle of a fork would be lost: it waits until somebody is there to hear it.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
        for index in range(self._count):
            ours, theirs = context.Pipe(duplex=False)
            process: BaseProcess = context.Process(
                target=_child,
                args=(index, theirs, (ours, *self._workers), seeding, self._body),
                name=f"silkline-{index}",
            )
            process.start()
            theirs.close()
            self._workers[ours] = process
        with _signals_to(self._interrupt):
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            try:
                self._attend(seeding)
            except BaseException:
                self._terminate()
                for process in self._workers.values():
                    process.join()
                raise
        return self._endings

    def _attend(self, seeding: Any) -> None:
        while self._workers:
            for connection in wait(list(self._workers), timeout=TICK):
                assert isinstance(connection, Connection)
                try:
                    self._received(connection, msgspec.msgpack.decode(connection.recv_bytes(), type=_Frame))
                except (EOFError, OSError):  # gone, perhaps in the middle of a frame
                    self._gone(connection, seeding)
            if self._latest:
                self._watch(merge(list(self._latest.values())))
        self._raise_errors()

    def _received(self, connection: Connection, frame: _Frame) -> None:
        if frame.snapshot is not None:
            self._latest[connection] = frame.snapshot
        if frame.ending is not None:
            self._endings.append(frame.ending)
            if frame.ending.snapshot is not None:
                self._latest[connection] = frame.ending.snapshot
            if frame.ending.error:
                self._terminate()

    def _gone(self, connection: Connection, seeding: Any) -> None:
        process = self._workers.pop(connection)
        connection.close()
        process.join()
        if process.exitcode == 0:
            return
        code = process.exitcode or 0
        how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
        self._killed.append(f"worker {process.name} died ({how})")
        if process.name == "silkline-0" and seeding.value and not self._interrupted:
            # Nobody else reads the seeds: without this the others would wait for ever.
            self._endings.append(
                Ending("error", error=f"{self._killed[-1]} while reading the seeds; run again", code=3)
            )
            self._terminate()

    def _raise_errors(self) -> None:
        for ending in self._endings:
            if ending.error:
                raise (ConfigError if ending.code == 2 else FatalError)(ending.error)
        if not self._endings and self._interrupted:
            raise KeyboardInterrupt  # before any worker was ready to wind down; nothing was leased
        if not self._endings:
            raise FatalError("; ".join(self._killed) + "; what was committed is kept, run again to go on")

    @property
    def snapshots(self) -> list[Snapshot]:
        """The last one of each worker, also of those that died."""
        return list(self._latest.values())

    @property
    def troubles(self) -> tuple[str, ...]:
        return tuple(self._killed)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self._interrupted = True
        self._terminate()

    def _terminate(self) -> None:
        for process in self._workers.values():
            with suppress(ProcessLookupError):
                process.terminate()


def _child(
    index: int, connection: Connection, inherited: Sequence[Connection], seeding: Any, body: Body
) -> None:
    for number in (
        signal.SIGINT,
        signal.SIGHUP,
    ):  # a terminal's go to all of the group; the parent acts on them
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
    for other in inherited:
        other.close()  # a pipe only breaks with the parent if nobody else holds its reading end

    def send(frame: _Frame) -> None:
        connection.send_bytes(msgspec.msgpack.encode(frame))

    room = select.poll()  # unlike select() it knows no highest file number
    room.register(connection, select.POLLOUT)

    def publish(snapshot: Snapshot) -> None:
        # Left out while the parent does not read (stopped, or held up by its own output): a full pipe
        # would block the event loop, and with it the heartbeats.
        if room.poll(0):
            send(_Frame(snapshot=snapshot))

    def seeded() -> None:
        seeding.value = 0

    seat = Seat(index=index, publish=publish, seeding=lambda: bool(seeding.value), seeded=seeded)
    try:
        ending = body(seat)
    except ConfigError as error:
        ending = Ending("error", error=str(error), code=2)
    except SilklineError as error:
        ending = Ending("error", error=str(error), code=3)
    except KeyboardInterrupt:  # a second signal, into a handler that never lets go
        ending = Ending("interrupted")
    with suppress(OSError):
        send(_Frame(ending=ending))
    connection.close()


class _signals_to:  # noqa: N801 - reads as the with-statement it is for
    """While inside, SIGINT, SIGTERM and SIGHUP call `handler`, the last one unless it is ignored."""

    def __init__(self, handler: Callable[[int, FrameType | None], None]) -> None:
        self._handler = handler
        self._before: dict[int, Any] = {}

    def __enter__(self) -> None:
        with suppress(ValueError):  # not in the main thread: whoever runs us there stops us
            for number in STOPPING:
                if number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                    continue
                self._before[number] = signal.signal(number, self._handler)

    def __exit__(self, *exc: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
