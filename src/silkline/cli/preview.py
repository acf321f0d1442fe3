"""Where the items go when the user names no output: a file beside the job, whose first items are shown."""

from __future__ import annotations

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
    path = folder / f"{resolved.settings.job}.jsonl"
    origin = resolved.origins["outputs"] if outputs else "kept beside the job"
    return resolved.having("outputs", (*outputs, str(path)), origin), path
