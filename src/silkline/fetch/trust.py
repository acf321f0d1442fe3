"""Which certificates are trusted, the same for every engine."""

from __future__ import annotations

import os
import ssl

from silkline.errors import ConfigError
from silkline.fetch.options import FetchOptions

TRUST = "trust its certificate by --ca-file FILE, or any by --insecure"
"""What to do about one that is not trusted, fit for the end of a message."""


def tls_context(options: FetchOptions) -> ssl.SSLContext | bool:
    """For Python's TLS: True for the usual one, False for no check.

    Raises ConfigError for a `ca_file` that cannot be used.
    """
    if not options.verify:
        return False
    return _own(options.ca_file) if options.ca_file else True


def ca_paths(options: FetchOptions) -> tuple[str | None, str | None]:
    """For a TLS of its own: the file and the directory of the certificates that Python would trust."""
    if options.ca_file:
        return options.ca_file, None
    known = ssl.get_default_verify_paths()
    return known.cafile, known.capath if known.capath and os.listdir(known.capath) else None


def check_trust(options: FetchOptions) -> None:
    """Raises ConfigError for a `ca_file` that cannot be used."""
    if options.ca_file:
        _own(options.ca_file)


def _own(path: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=path)
    except (OSError, ssl.SSLError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"ca_file: {path!r} holds no certificates in PEM form: {reason}") from error
