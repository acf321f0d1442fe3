"""Which files have a job's items: its outputs, or the parts that its workers wrote, here or elsewhere."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import PurePath

import msgspec

from silkline.errors import ConfigError, SilklineError
from silkline.files import is_slip, shown_output, split_ending
from silkline.protocols import Positions
from silkline.sinks.choose import KINDS, has_spool
from silkline.sinks.committed import Committed, committed
from silkline.sinks.part import part_at
from silkline.sinks.spool import spool_of

SHOWN = 3
"""Names that a message has at most."""


class Source(msgspec.Struct, frozen=True):
    """A file that a job has written.

    path: its absolute name on the machine that wrote it. position: how far it counts.
    output: the absolute name that was given for the output. worker, host: of a part, "" for a whole output.
    items: how many count; None where that is not known.
    """

    path: str
    position: str
    output: str
    worker: str = ""
    host: str = ""
    items: int | None = None


def sources_in(positions: Positions) -> list[Source]:
    """What a job has committed, but for sinks that are no files of ours."""
    found = []
    for path, position in sorted(positions.items()):
        part = part_at(position)
        if part is not None:
            found.append(Source(path, part.mark, part.output, part.worker, part.host, part.items))
        elif os.path.isabs(path) and split_ending(path)[1].lower() in KINDS:
            found.append(Source(path, position, path))
    return found


def chosen(sources: Sequence[Source], wanted: Sequence[str]) -> list[Source]:
    """The sources that have every item of the job once.

    wanted: outputs, by their names or the ends of them; all outputs where nothing is said.

    Raises ConfigError where one is not there, and where a worker wrote its items to several of them.
    """
    for name in wanted:
        if is_slip(name):
            scheme = name.partition(":")[0]
            raise ConfigError(
                f"--from {shown_output(name)!r}: write two slashes behind {scheme}: {scheme}://"
            )
        if not any(_is(source, name) for source in sources):
            known = f"there are: {_names(sources)}" if sources else "it has written none yet"
            raise ConfigError(f"the job has no output {name!r}; {known}")
    taken = [source for source in sources if not wanted or any(_is(source, name) for name in wanted)]
    if any(times > 1 for times in Counter(source.worker for source in taken).values()):
        raise ConfigError(f"the job has several outputs, choose one with --from: {_names(taken)}")
    return taken


def left_out(sources: Sequence[Source], taken: Sequence[Source]) -> list[Source]:
    """Of the workers that wrote none of the chosen outputs, what they wrote instead."""
    workers = {source.worker for source in taken}
    return [source for source in sources if source.worker not in workers]


def located(
    sources: Sequence[Source], folders: Sequence[str], *, partial: bool = False
) -> tuple[list[Committed], list[Source]]:
    """What counts in these files, where they are on this machine; and those that are missing here.

    folders: where copies of other machines' files may be.

    Raises ConfigError for folders that are none, and for files that are missing, unless `partial`.
    """
    for folder in folders:
        if not os.path.isdir(folder):
            raise ConfigError(
                f"--parts {folder}: there is no such folder; name one with copies of part files"
            )
    found: list[Committed] = []
    missing = []
    for source in sources:
        if source.items == 0:
            continue
        copies = [source.path, *(os.path.join(folder, os.path.basename(source.path)) for folder in folders)]
        path = next(filter(_is_there, copies), None)
        if path is None:
            missing.append(source)
        else:
            found.append(read_back(path, source))
    if missing and not partial:
        raise ConfigError(
            f"{whereabouts(missing)}; name the folder of a copy with --parts DIR, or leave out what is "
            "missing with --partial"
        )
    return found, missing


def whereabouts(missing: Sequence[Source]) -> str:
    """Files that are not on this machine, and where they are."""
    some = ", ".join(f"{one.path} of {one.host or 'this job'}" for one in missing[:SHOWN])
    more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
    items = sum(one.items or 0 for one in missing)
    verb = "is" if len(missing) == 1 else "are"
    return f"{some}{more} {verb} not here" + (f" ({items:,} items)" if items else "")


def read_back(path: str, source: Source) -> Committed:
    """Raises SilklineError for a position that is not in the format of the file."""
    try:
        return committed(path, source.position, source.items)
    except (ValueError, msgspec.MsgspecError) as error:
        raise SilklineError(f"the job's position in {source.path} cannot be read: {error}") from error


def _is_there(path: str) -> bool:
    return os.path.exists(path) or (has_spool(path) and os.path.exists(spool_of(path)))


def _is(source: Source, name: str) -> bool:
    if os.path.isabs(name):
        return source.output in (name, os.path.normpath(name))
    parts = PurePath(os.path.normpath(name)).parts
    return PurePath(source.output).parts[-len(parts) :] == parts


def _names(sources: Iterable[Source]) -> str:
    """Base names if they tell the outputs apart, full ones if not."""
    outputs = sorted({source.output for source in sources})
    names = sorted({os.path.basename(output) for output in outputs})
    return ", ".join(names if len(names) > 1 else outputs)
