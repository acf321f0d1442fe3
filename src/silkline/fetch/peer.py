"""The other end of a connection."""

from __future__ import annotations

from typing import Any


def address_of(peername: Any) -> str:
    """A socket's address as "192.0.2.1:80" or "[2001:db8::1]:80"; "" where there is none."""
    if not isinstance(peername, tuple) or len(peername) < 2:
        return ""
    host = f"[{peername[0]}]" if ":" in peername[0] else peername[0]
    return f"{host}:{peername[1]}"
