"""Middleware around a fetch: `async def middleware(request, call_next) -> Response`."""

from __future__ import annotations

from collections.abc import Sequence

from silkline.protocols import CallNext, Middleware


def compose(middleware: Sequence[Middleware], fetch: CallNext) -> CallNext:
    """Wrap `fetch` once; the first middleware is the outermost. With none it is `fetch` itself."""
    for layer in reversed(middleware):
        fetch = _bind(layer, fetch)
    return fetch


def _bind(middleware: Middleware, call_next: CallNext) -> CallNext:
    return lambda request: middleware(request, call_next)
