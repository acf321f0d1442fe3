"""The server's side of SCRAM-SHA-256 (RFC 7677), for one user."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from typing import Any

from tests.mongodb.store import Failure

ROUNDS = 4096
DENIED = Failure(18, "Authentication failed.", codeName="AuthenticationFailed")


class Login:
    """One connection's. user: "" lets everybody in."""

    def __init__(self, user: str, password: str) -> None:
        self._user, self._password = user, password
        self._salt = os.urandom(16)
        self._said = self._nonce = ""
        self.done = not user

    def start(self, command: dict[str, Any]) -> dict[str, Any]:
        if command["mechanism"] != "SCRAM-SHA-256":
            raise DENIED
        first = command["payload"].decode()[3:]  # behind "n,,"
        given = dict(part.split("=", 1) for part in first.split(","))
        if given["n"] != self._user:
            raise DENIED
        self._nonce = given["r"] + base64.b64encode(os.urandom(18)).decode()
        reply = f"r={self._nonce},s={base64.b64encode(self._salt).decode()},i={ROUNDS}"
        self._said = f"{first},{reply}"
        return {"conversationId": 1, "done": False, "payload": reply.encode()}

    def go_on(self, command: dict[str, Any]) -> dict[str, Any]:
        if self.done:
            return {"conversationId": 1, "done": True, "payload": b""}
        last = command["payload"].decode()
        bare, _, proof = last.rpartition(",p=")
        said = f"{self._said},{bare}".encode()
        salted = hashlib.pbkdf2_hmac("sha256", self._password.encode(), self._salt, ROUNDS)
        client_key = hmac.digest(salted, b"Client Key", "sha256")
        signature = hmac.digest(hashlib.sha256(client_key).digest(), said, "sha256")
        given = base64.b64decode(proof)
        if bytes(a ^ b for a, b in zip(client_key, signature, strict=True)) != given:
            raise DENIED
        server_key = hmac.digest(salted, b"Server Key", "sha256")
        self.done = True
        verifier = base64.b64encode(hmac.digest(server_key, said, "sha256"))
        return {"conversationId": 1, "done": False, "payload": b"v=" + verifier}
