"""MongoDB's wire protocol, as far as today's drivers speak it: OP_MSG, and OP_QUERY for the first hello."""

from __future__ import annotations

import socket
import struct
from typing import Any

import bson

OP_REPLY, OP_QUERY, OP_MSG = 1, 2004, 2013
MORE_TO_COME = 2
HEADER = struct.Struct("<iiii")

Document = dict[str, Any]


class Connection:
    """One client."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock

    def receive(self) -> tuple[int, int, Document, bool] | None:
        """The next command: its id, the opcode, the body with its document sequences as fields, and whether
        it wants a reply. None at the end."""
        head = self._exactly(HEADER.size)
        if head is None:
            return None
        length, number, _, opcode = HEADER.unpack(head)
        payload = self._exactly(length - HEADER.size)
        if payload is None:
            return None
        if opcode == OP_QUERY:
            start = payload.index(b"\0", 4) + 1 + 8
            return number, opcode, bson.decode(payload[start:]), True
        if opcode != OP_MSG:
            raise ValueError(f"opcode {opcode} is not spoken here")
        flags = struct.unpack_from("<I", payload)[0]
        return number, opcode, body_in(payload[4:]), not flags & MORE_TO_COME

    def answer(self, number: int, opcode: int, reply: Document) -> None:
        document = bson.encode(reply)
        if opcode == OP_QUERY:
            payload = struct.pack("<iqii", 8, 0, 0, 1) + document
            self._send(OP_REPLY, number, payload)
        else:
            self._send(OP_MSG, number, struct.pack("<IB", 0, 0) + document)

    def _send(self, opcode: int, answers: int, payload: bytes) -> None:
        self._socket.sendall(HEADER.pack(HEADER.size + len(payload), 0, answers, opcode) + payload)

    def _exactly(self, count: int) -> bytes | None:
        found = bytearray()
        while len(found) < count:
            piece = self._socket.recv(min(count - len(found), 1 << 20))
            if not piece:
                return None
            found += piece
        return bytes(found)


def body_in(sections: bytes) -> Document:
    """The body of a message (kind 0), each of its document sequences (kind 1) a list in it."""
    body: Document = {}
    sequences: Document = {}
    at = 0
    while at < len(sections):
        kind = sections[at]
        size = struct.unpack_from("<i", sections, at + 1)[0]
        section = sections[at + 1 : at + 1 + size]
        if kind == 0:
            body = bson.decode(section)
        else:
            end = section.index(b"\0", 4)
            sequences[section[4:end].decode()] = bson.decode_all(section[end + 1 :])
        at += 1 + size
    return body | sequences
