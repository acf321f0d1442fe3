"""Where the items go when the user names no output: a file beside the job, whose first items are shown."""

from __future__ import annotations

import os
from hashlib import blake2b
from pathlib import Path

from silkline.cli.store import FOLDER
from silkline.files import is_archive
from silkline.resolve import Resolved


def with_preview(
    resolved: Resolved, *, elsewhere: bool = False, folder: Path = FOLDER
) -> tuple[Resolved, Path | None]:
    """The settings with that file among the outputs, and its path; as they are, and None, where items have an
    output. elsewhere: they have one that is no setting."""
    outputs = resolved.settings.outputs
    if elsewhere or not all(map(is_archive, outputs)):
        return resolved, None
    path = folder / f"{resolved.settings.job}{_mark(resolved)}.jsonl"
    origin = resolved.origins["outputs"] if outputs else "kept beside the job"
    return resolved.having("outputs", (*outputs, str(path)), origin), path


def _mark(resolved: Resolved) -> str:
    """Tells a job in a file that the user named from the one of that name in its usual place, whose items are
    not its own. On a server each worker has part files of its own names."""
    from silkline.frontier.open import store_file

    settings = resolved.settings
    named = store_file(settings.frontier_url)
    usual = FOLDER / f"{settings.job}.db"
    if named is None or os.path.realpath(named) == os.path.realpath(usual):
        return ""
    return f"-{blake2b(os.path.realpath(named).encode(), digest_size=4).hexdigest()}"
