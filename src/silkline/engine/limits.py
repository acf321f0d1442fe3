"""Limits that are sound alone, but not beside each other."""

from __future__ import annotations

from silkline.config import Settings
from silkline.errors import SettingError
from silkline.values import MEMORY_OF_ONE

MB = 1_000_000


def check_limits(settings: Settings) -> None:
    """Raises SettingError."""
    ceiling, per_host = settings.adaptive_ceiling, settings.per_host
    if settings.adaptive and ceiling is not None and ceiling < per_host:
        raise SettingError(
            "adaptive_ceiling",
            f"is {ceiling}, but per_host lets {per_host} requests at once through from the start: "
            f"lower per_host to {ceiling}, or leave adaptive_ceiling out",
        )
    memory, processes = settings.max_memory, settings.processes
    if memory is not None and memory < MEMORY_OF_ONE * processes:
        raise SettingError(
            "max_memory",
            f"is {memory // MB} MB for {processes} processes together, of which each takes "
            f"{MEMORY_OF_ONE // MB} MB before it visits a page: write {100 * processes}MB or more",
        )
