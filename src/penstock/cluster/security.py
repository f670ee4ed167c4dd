"""Who may talk to whom: TLS, and a token.

In:   files of certificates and keys, and a token, from whoever starts a server or a client.
Out:  channels and ports that ask for them.
Not:  TensorFlow knows neither: a cluster with its tasks in it has none of this.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import grpc

from penstock.cluster.services import CHANNEL_OPTIONS
from penstock.core.files import FileSystem, file_errors
from penstock.errors import InvalidArgumentError

_AUTHORIZATION = "authorization"


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """What tasks ask of each other, and clients of them; nothing at all by default."""

    #: The certificates that peers are checked against, a PEM file; with it, connections use TLS.
    tls_ca: str = ""
    #: This task's own certificate chain and key, PEM files; servers that use TLS need them.
    tls_certificate: str = ""
    tls_key: str = ""
    #: What every call must bring along.
    token: str = ""

    def __post_init__(self) -> None:
        if bool(self.tls_certificate) != bool(self.tls_key):
            raise InvalidArgumentError(
                "TLS needs a certificate and its key", next_step="give both, or neither"
            )
        if self.token and not (self.token.isascii() and self.token.isprintable()):
            raise InvalidArgumentError("A token consists of printable ASCII characters")

    def __repr__(self) -> str:
        return f"Security(tls={bool(self.tls_ca or self.tls_key)}, token={bool(self.token)})"

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """What is sent with each call."""
        return ((_AUTHORIZATION, f"Bearer {self.token}"),) if self.token else ()

    def admits(self, metadata: Iterable[Any]) -> bool:
        """Whether a call brings the token along."""
        if not self.token:
            return True
        wanted = f"Bearer {self.token}".encode()
        given = [value for key, value in metadata if key == _AUTHORIZATION]
        return any(hmac.compare_digest(str(value).encode(), wanted) for value in given)

    def channel(self, address: str) -> Any:
        """A channel to an address; connects when it is first used."""
        return self._channel(grpc, address)

    def async_channel(self, address: str) -> Any:
        """The same for the event loop that runs where this is called."""
        return self._channel(grpc.aio, address)

    def _channel(self, kind: Any, address: str) -> Any:
        if not self.tls_ca:
            return kind.insecure_channel(address, options=CHANNEL_OPTIONS)
        credentials = grpc.ssl_channel_credentials(
            _read(self.tls_ca), _read_or_none(self.tls_key), _read_or_none(self.tls_certificate)
        )
        return kind.secure_channel(address, credentials, options=CHANNEL_OPTIONS)

    def add_port(self, server: Any, address: str) -> int:
        """Have a server listen; returns the port, 0 if it cannot be had."""
        if not self.tls_key:
            port: int = server.add_insecure_port(address)
            return port
        pair = _read(self.tls_key), _read(self.tls_certificate)
        authority = _read_or_none(self.tls_ca)
        credentials = grpc.ssl_server_credentials(
            [pair], authority, require_client_auth=authority is not None
        )
        secure: int = server.add_secure_port(address, credentials)
        return secure


def _read(path: str) -> bytes:
    with file_errors(path):
        return FileSystem().read(path)


def _read_or_none(path: str) -> bytes | None:
    return _read(path) if path else None
