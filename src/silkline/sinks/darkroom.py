"""A process that makes thumbnails: decoders hold up no event loop there, and one that dies dies alone.

The two speak in frames: four bytes with a length, and so many bytes of MessagePack.
"""

from __future__ import annotations

import asyncio
import signal
import struct
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import IO

import msgspec

from silkline.errors import ItemError
from silkline.sinks.thumbnail import Box, Thumbnail, thumbnails_of

LENGTH = struct.Struct(">I")


class Order(msgspec.Struct, frozen=True, array_like=True):
    """kind: the media type of the body."""

    body: bytes
    kind: str
    boxes: Sequence[Box]


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """problem: why there are none."""

    thumbnails: Sequence[Thumbnail] = ()
    problem: str = ""


class Darkroom:
    """One picture at a time: each may take hundreds of megabytes. The process is started by the first."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._aside = ThreadPoolExecutor(1, "thumbnails")

    async def thumbnails_of(self, body: bytes, kind: str, boxes: Sequence[Box]) -> Sequence[Thumbnail]:
        """See `thumbnail.thumbnails_of`. Raises ItemError, also where the decoder has ended the process."""
        loop = asyncio.get_running_loop()
        try:
            answer = await loop.run_in_executor(self._aside, self._asked, Order(body, kind, boxes))
        except (OSError, EOFError, msgspec.MsgspecError) as error:
            raise ItemError(f"has ended the process that reads {kind}") from error
        if answer.problem:
            raise ItemError(answer.problem)
        return answer.thumbnails

    def close(self) -> None:
        self._end()
        self._aside.shutdown(wait=False, cancel_futures=True)

    def _asked(self, order: Order) -> Answer:
        """In the thread, which waits while the process works."""
        process = self._process = self._process or self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            send(process.stdin, msgspec.msgpack.encode(order))
            return msgspec.msgpack.decode(received(process.stdout), type=Answer)
        except BaseException:
            self._end()
            raise

    def _started(self) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-m", __name__]
        pipe = subprocess.PIPE
        return subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with suppress(BrokenPipeError), process:  # closes the pipes and waits
                process.kill()


def send(pipe: IO[bytes], frame: bytes) -> None:
    pipe.write(LENGTH.pack(len(frame)))
    pipe.write(frame)
    pipe.flush()


def received(pipe: IO[bytes]) -> bytes:
    """Raises EOFError where the other one has ended."""
    head = pipe.read(LENGTH.size)
    if len(head) < LENGTH.size:
        raise EOFError
    (length,) = LENGTH.unpack(head)
    frame = pipe.read(length)
    if len(frame) < length:
        raise EOFError
    return frame


def work(orders: IO[bytes], answers: IO[bytes]) -> None:
    """Until there are no more: whoever sends them has ended, however it did."""
    with suppress(EOFError, BrokenPipeError):
        while True:
            order = msgspec.msgpack.decode(received(orders), type=Order)
            try:
                answer = Answer(thumbnails_of(order.body, order.kind, order.boxes))
            except ItemError as error:
                answer = Answer(problem=str(error))
            send(answers, msgspec.msgpack.encode(answer))


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal: the crawl still has pictures to finish
    work(sys.stdin.buffer, sys.stdout.buffer)
