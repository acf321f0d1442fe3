"""What the driver's errors mean to a delivery: wait, leave a row out, or stop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from bson.errors import BSONError
from pymongo.errors import (
    BulkWriteError,
    ConfigurationError,
    ConnectionFailure,
    OperationFailure,
    PyMongoError,
    WriteConcernError,
)

from silkline.errors import RowsRefused, SinkAwayError, SinkError

AWAY = frozenset(
    {
        6,  # HostUnreachable
        7,  # HostNotFound
        50,  # MaxTimeMSExpired
        64,  # WriteConcernTimeout
        89,  # NetworkTimeout
        91,  # ShutdownInProgress
        112,  # WriteConflict
        133,  # FailedToSatisfyReadPreference
        189,  # PrimarySteppedDown
        202,  # NetworkInterfaceExceededTimeLimit
        262,  # ExceededTimeLimit
        9001,  # SocketException
        10107,  # NotWritablePrimary
        11600,  # InterruptedAtShutdown
        11602,  # InterruptedDueToReplStateChange
        13435,  # NotPrimaryNoSecondaryOk
        13436,  # NotPrimaryOrSecondary
        14031,  # OutOfDiskSpace
    }
)
"""Error codes of servers that can be expected to get over it."""

DENIED = frozenset({8000, 11, 13, 18})
"""AtlasError, UserNotFound, Unauthorized, AuthenticationFailed."""

DATA = frozenset(
    {
        2,  # BadValue
        9,  # FailedToParse
        15,  # Overflow
        22,  # InvalidBSON
        52,  # DollarPrefixedFieldName
        57,  # DottedFieldName
        121,  # DocumentValidationFailure
        10334,  # BSONObjectTooLarge
        11000,  # DuplicateKey
    }
)
"""Of whole commands: the fault of a document."""

DUPLICATE = 11000


@contextmanager
def told(name: str) -> Iterator[None]:
    """Raise the sinks' errors in place of the driver's. name: of the sink, as it may be shown."""
    try:
        yield
    except BulkWriteError as error:
        raise _of_bulk(name, error.details) from error
    except (ConnectionFailure, WriteConcernError) as error:
        raise SinkAwayError(f"{name} does not answer: {one_line(error)}") from error
    except OperationFailure as error:
        raise _of_code(name, error.code, one_line(error), DATA) from error
    except BSONError as error:
        raise RowsRefused(one_line(error)) from error
    except ConfigurationError as error:
        raise SinkError(f"{name} cannot be used: {one_line(error)}") from error
    except PyMongoError as error:
        raise SinkError(f"{name}: {one_line(error)}; nothing is lost") from error


def met_another(error: RowsRefused) -> bool:
    """Whether documents were refused only because others of their `_id` came in at the same moment."""
    cause = error.__cause__
    if not isinstance(cause, BulkWriteError):
        return False
    return all(_is_of_id(each) for each in cause.details["writeErrors"])


def one_line(error: BaseException) -> str:
    """Its message without the driver's inner state."""
    text = " ".join(str(error).split())
    for noise in (" (configured timeouts:", ", full error:", ", Timeout:", ", Topology Description:"):
        text = text.partition(noise)[0]
    return text[:300] or type(error).__name__


def _of_bulk(name: str, details: Mapping[str, Any]) -> SinkError:
    """What is worth waiting for comes first: the batch is written again as a whole."""
    found = [*details.get("writeErrors", ()), *details.get("writeConcernErrors", ())]
    for each in found:
        if each.get("code") in AWAY:
            return SinkAwayError(f"{name} cannot write now: {_text(each)}")
    for each in found:
        if each.get("code") in DENIED:
            return _of_code(name, each["code"], _text(each), frozenset())
    if details.get("writeErrors"):
        other = [each for each in details["writeErrors"] if not _is_of_id(each)]
        return RowsRefused(_text((other or details["writeErrors"])[0]))
    return SinkAwayError(f"{name} does not confirm: {_text(found[0]) if found else 'no reason given'}")


def _of_code(name: str, code: int | None, text: str, data: frozenset[int]) -> SinkError:
    if code in AWAY:
        return SinkAwayError(f"{name} cannot write now: {text}")
    if code in data:
        return RowsRefused(text)
    if code in DENIED:
        return SinkError(
            f"{name} refuses the user: {text}; check name, password and rights (authSource=admin, if that is "
            "the database that has the user)"
        )
    return SinkError(f"{name}: {text}; nothing is lost, mend it and run the same command again")


def _is_of_id(error: Mapping[str, Any]) -> bool:
    if error.get("code") != DUPLICATE:
        return False
    pattern = error.get("keyPattern")
    return "_id" in pattern if pattern else " _id_ " in str(error.get("errmsg"))


def _text(error: Mapping[str, Any]) -> str:
    return " ".join(str(error.get("errmsg") or error).split())[:300]
