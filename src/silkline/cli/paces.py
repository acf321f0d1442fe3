"""Why hosts are asked as fast as they are."""

from __future__ import annotations

from collections.abc import Iterable

from silkline.outcome import HostState
from silkline.politeness.pace import why


def reasons(hosts: Iterable[HostState]) -> dict[str, str]:
    """By politeness key, of those that have a pace."""
    return {host.key: why(host.pace_state) for host in hosts if host.pace is not None}
