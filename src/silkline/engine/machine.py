"""The machine that a worker runs on: what is short there holds back new leases before it hurts.

Once a second it is looked at how late the event loop is, how much memory is taken, how many files are open,
and whether the container's CPU quota stops us. While something is short the visits that may run at once go
down by 0.7 a second, to one at least; then they come back by a tenth a second.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic

import msgspec

from silkline.engine.leases import Held
from silkline.events import Trouble
from silkline.protocols import Hook

PERIOD = 1.0
BEAT = 0.1
"""Seconds between two measurements of the loop's lateness."""

LATE = 0.25
"""Seconds by which the event loop may be late: timeouts and renewals are kept by it."""
NEARLY = 0.9
"""Share of the memory limit at which it is short."""
OPEN_FILES = 0.8
THROTTLED = 0.25
"""Share of the time in which the container's CPU quota had us stopped."""
SHARE = 0.8
"""Of the container's memory limit, what a crawl takes by default."""

DOWN, UP = 0.7, 0.1
LASTING = 2
"""Looks in a row that find the loop late or the CPU short before that counts: one may be a handler's."""

_PAGE = resource.getpagesize()


class Container:
    """What the control group says that we are in; version 2, or 1. root, own: where to look, for tests."""

    def __init__(self, root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> None:
        groups = _groups(own)
        self._v2 = _first(root / groups.get("", "").lstrip("/"), root, has="memory.max")
        memory = groups.get("memory", "").lstrip("/")
        self._v1 = _first(root / "memory" / memory, root / "memory", has="memory.limit_in_bytes")
        cpu = groups.get("cpu", groups.get("cpu,cpuacct", "")).lstrip("/")
        self._cpu = _first(root / "cpu" / cpu, root / "cpu", has="cpu.stat") or self._v2

    def memory_limit(self) -> int | None:
        """Bytes; None for none."""
        text = _read(self._v2, "memory.max") or _read(self._v1, "memory.limit_in_bytes")
        limit = int(text) if text.isdigit() else 0
        return limit if 0 < limit < 1 << 60 else None  # version 1 says "none" by a huge number

    def memory_used(self) -> int:
        """Bytes that cannot be had back by dropping what files have in the cache."""
        used = _read(self._v2, "memory.current") or _read(self._v1, "memory.usage_in_bytes")
        stat = _stat(self._v2 or self._v1, "memory.stat")
        cache = stat.get("inactive_file", 0) if self._v2 else stat.get("total_inactive_file", 0)
        return max(0, int(used or 0) - cache)

    def throttled(self) -> float:
        """Seconds for which the CPU quota has had us stopped, in all."""
        stat = _stat(self._cpu, "cpu.stat")
        return stat.get("throttled_usec", 0) / 1e6 or stat.get("throttled_time", 0) / 1e9


class Load(msgspec.Struct, frozen=True):
    """late: seconds, of the event loop. memory: bytes. files: open ones. throttled: share of the time.
    limit: bytes of memory, None for none; most_files: that may be open."""

    late: float = 0.0
    memory: int = 0
    files: int = 0
    throttled: float = 0.0
    limit: int | None = None
    most_files: int = 1_000_000

    def shortage(self) -> str:
        """What there is too little of at once; "" for nothing."""
        if self.limit is not None and self.memory > NEARLY * self.limit:
            mib = 1 << 20
            return f"memory is short ({self.memory // mib} of {self.limit // mib} MiB, max_memory)"
        if self.files > OPEN_FILES * self.most_files:
            return f"{self.files} of {self.most_files} files are open (ulimit -n)"
        return ""

    def strain(self) -> str:
        """What there is too little of if it lasts."""
        if self.late > LATE:
            return f"the event loop is {self.late:.1f} s late: handlers or the machine are too slow"
        if self.throttled > THROTTLED:
            return f"the container's CPU quota stops us {self.throttled:.0%} of the time"
        return ""


class Gauge:
    """Measures this process. max_memory: bytes for this process; None for the container's limit, if any."""

    def __init__(self, max_memory: int | None = None, container: Container | None = None) -> None:
        self._container = container or Container()
        self._own = max_memory
        limit = self._container.memory_limit()
        self._limit = max_memory if max_memory is not None else limit and int(SHARE * limit)
        self._at, self._throttled = monotonic(), self._container.throttled()

    def __call__(self, late: float) -> Load:
        now, throttled = monotonic(), self._container.throttled()
        share = (throttled - self._throttled) / max(0.001, now - self._at)
        self._at, self._throttled = now, throttled
        in_container = self._own is None and self._limit is not None
        return Load(
            late=late,
            memory=self._container.memory_used() if in_container else memory_of_process(),
            files=open_files(),
            throttled=share,
            limit=self._limit,
            most_files=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        )


class Machine:
    """Holds `held` to what the machine can bear. Says so once for each kind of shortage."""

    def __init__(
        self, held: Held, gauge: Callable[[float], Load], hook: Hook, wake_leaser: Callable[[], None]
    ) -> None:
        self.load = Load()
        self.late = 0.0
        """Seconds by which the event loop was late in the last second, on average."""
        self._held = held
        self._gauge = gauge
        self._hook = hook
        self._wake_leaser = wake_leaser
        self._strained = 0
        self._said: set[str] = set()

    async def run(self) -> None:
        """Look for ever."""
        looked, lateness, beats = monotonic(), 0.0, 0
        while True:
            before = monotonic()
            await asyncio.sleep(BEAT)
            now = monotonic()
            lateness += max(0.0, now - before - BEAT)
            beats += 1
            if now - looked >= PERIOD:
                self.look(lateness / beats)
                looked, lateness, beats = now, 0.0, 0

    def look(self, late: float) -> None:
        """Once a second, with how late the event loop was."""
        self.late = late
        self.load = load = self._gauge(late)
        strain = load.strain()
        self._strained = self._strained + 1 if strain else 0
        short = load.shortage() or (strain if self._strained >= LASTING else "")
        held = self._held
        if short:
            allowed = max(1, int(DOWN * held.concurrency))
            kind = short.split()[0]
            if allowed < held.concurrency and kind not in self._said:
                self._said.add(kind)
                self._hook(Trouble(f"fewer pages at once, {allowed} of {held.asked} at first: {short}"))
            held.hold_back(allowed)
        elif held.concurrency < held.asked and not strain:
            held.hold_back(held.concurrency + max(1, int(UP * held.asked)))
            self._wake_leaser()


def memory_of_process() -> int:
    """Bytes that are resident."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024  # the peak is all that is to be had


def open_files() -> int:
    """How many descriptors are open; 0 where that cannot be told."""
    for folder in ("/proc/self/fd", "/dev/fd"):
        try:
            return len(os.listdir(folder))
        except OSError:
            continue
    return 0


def _groups(own: Path) -> dict[str, str]:
    """Our control group's path by controller; "" is the one of version 2."""
    groups = {}
    try:
        for line in own.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            for controller in (controllers, *controllers.split(",")):
                groups[controller] = path
    except (OSError, ValueError):
        pass
    return groups


def _first(*folders: Path, has: str) -> Path | None:
    """In a container its own group is often mounted as the root."""
    return next((folder for folder in folders if (folder / has).exists()), None)


def _read(folder: Path | None, name: str) -> str:
    try:
        return "" if folder is None else (folder / name).read_text().strip()
    except OSError:
        return ""


def _stat(folder: Path | None, name: str) -> dict[str, int]:
    pairs = (line.split() for line in _read(folder, name).splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}
