"""Label -> handler."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from silkline.errors import ConfigError, UnknownLabelError
from silkline.request import DEFAULT_LABEL, Request

Handler = Callable[..., Any]
"""A function of a page: sync or async, a generator or returning an iterable or None."""


class Router:
    """The handlers of one crawler, by label."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}

    def add(self, label: str, handler: Handler) -> None:
        """Raises ConfigError where the label has a handler already or `handler` cannot be called."""
        if not callable(handler):
            raise ConfigError(f"the handler for label {label!r} is {handler!r}, which cannot be called")
        if label in self._handlers:
            name = getattr(self._handlers[label], "__name__", "another function")
            raise ConfigError(f"label {label!r} has the handler {name} already; give this one another label")
        self._handlers[label] = handler

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self._handlers)

    def handler(self, label: str) -> Handler:
        """Raises UnknownLabelError, which names the labels there are."""
        try:
            return self._handlers[label]
        except KeyError:
            raise UnknownLabelError(self._unknown(label)) from None

    def check(self, requests: Iterable[Request]) -> None:
        """Raises UnknownLabelError at the first request that no handler would get."""
        for request in requests:
            if request.label not in self._handlers:
                raise UnknownLabelError(self._unknown(request.label))

    def _unknown(self, label: str) -> str:
        if not self._handlers:
            return "this crawler has no handler; write one with @crawler.handler"
        known = ", ".join(sorted(self._handlers))
        if label == DEFAULT_LABEL:
            return f"no handler without a label; there are: {known}. Write one with @crawler.handler"
        return f"no handler for the label {label!r}; there are: {known}"
