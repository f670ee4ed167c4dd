"""What strangers may send to a server's port: any bytes, and requests that make no sense."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from typing import Any

import grpc

from penstock.cluster import Server
from penstock.cluster.services import METHODS, request_class
from penstock.defs.schema import Message

#: What HTTP/2 begins with, and an empty frame of settings.
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
#: The beginning of a TLS ClientHello.
CLIENT_HELLO = bytes.fromhex("1603010200010001fc0303") + bytes(range(64)) * 8
PATHS = [(f"/{service}/{m}", m) for service, methods in METHODS.items() for m in methods]
#: Numbers that no size should be.
ABSURD = [-1, -(1 << 63), (1 << 63) - 1, 1 << 62, 1 << 31, 1 << 40]


def port_of(server: Server) -> int:
    """Where a server listens."""
    return int(server.target.rpartition(":")[2])


def connect(server: Server, content: bytes = b"") -> socket.socket:
    """A connection on which something was sent."""
    made = socket.create_connection(("127.0.0.1", port_of(server)), timeout=20)
    made.sendall(content)
    return made


def until_closed(connection: socket.socket) -> bytes:
    """All that comes until the other side hangs up; that it does not is TimeoutError."""
    found = b""
    try:
        while piece := connection.recv(1 << 16):
            found += piece
    except ConnectionError:
        pass
    connection.close()
    return found


def frame(kind: int, flags: int, stream: int, content: bytes) -> bytes:
    """One frame of HTTP/2."""
    return (
        len(content).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + content
    )


def call_head(path: str) -> bytes:
    """The frame of headers that begins a call, in HPACK's plainest form."""

    def literal(name: bytes, value: bytes) -> bytes:
        return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value

    fields = [
        (b":method", b"POST"), (b":scheme", b"http"), (b":path", path.encode()),
        (b":authority", b"x"), (b"te", b"trailers"), (b"content-type", b"application/grpc"),
    ]  # fmt: skip
    return frame(1, 4, 1, b"".join(literal(*field) for field in fields))


class Caller:
    """Sends any bytes as the request of any method."""

    def __init__(self, server: Server) -> None:
        self._channel = grpc.insecure_channel(f"127.0.0.1:{port_of(server)}")

    def code(self, path: str, content: bytes, *, seconds: float = 10) -> str:
        """The name of the code that a call ends with."""
        call = self._channel.unary_unary(path)
        try:
            call(content, timeout=seconds)
        except grpc.RpcError as error:
            return str(error.code().name)
        return "OK"

    def close(self) -> None:
        """Hang up."""
        self._channel.close()


def garbage(draw: random.Random) -> Iterator[bytes]:
    """Bytes that are no HTTP/2."""
    yield b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    yield b"POST /tensorflow.MasterService/RunStep HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n"
    yield CLIENT_HELLO
    yield b"\x00" * 4096
    yield PREFACE + b"\xff" * 4096
    yield PREFACE + SETTINGS + frame(0, 0, 1, b"no call has begun")
    for size in (1, 10, 100, 10_000):
        yield draw.randbytes(size)
        yield PREFACE + SETTINGS + draw.randbytes(size)


def filled(message: Any, draw: random.Random, depth: int = 0) -> Any:
    """A message with something in many of its fields: strings, absurd numbers, messages."""
    for field in message.DESCRIPTOR.fields:
        if draw.random() < 0.5 or (depth > 2 and field.message_type is not None):
            continue
        is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
        if is_map:
            continue
        value = getattr(message, field.name)
        if field.message_type is not None:
            filled(value.add() if field.is_repeated else value, draw, depth + 1)
        elif field.is_repeated:
            value.append(_scalar(field, draw))
        else:
            setattr(message, field.name, _scalar(field, draw))
    return message


def _scalar(field: Any, draw: random.Random) -> Any:
    if field.enum_type is not None:
        return draw.choice([value.number for value in field.enum_type.values])
    if field.cpp_type == field.CPPTYPE_STRING:
        text = draw.choice(["", "x", "/job:worker/task:0", "\x00", "é" * 40, "x:99999999999", "^x"])
        return text.encode() if field.type == field.TYPE_BYTES else text
    if field.cpp_type == field.CPPTYPE_BOOL:
        return draw.random() < 0.5
    if field.cpp_type in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
        return draw.choice([0.0, -1.0, float("nan"), 1e30])
    number = draw.choice([0, 1, *ABSURD])
    bits = 32 if field.cpp_type in (field.CPPTYPE_INT32, field.CPPTYPE_UINT32) else 64
    is_signed = field.cpp_type in (field.CPPTYPE_INT32, field.CPPTYPE_INT64)
    number &= (1 << bits) - 1
    return number - (1 << bits) if is_signed and number >> (bits - 1) else number


def damaged(content: bytes, draw: random.Random) -> bytes:
    """The same bytes, cut off somewhere or with others in between."""
    if draw.random() < 0.5:
        return content[: draw.randrange(len(content) + 1)]
    at = draw.randrange(len(content) + 1)
    return content[:at] + draw.randbytes(draw.randrange(1, 9)) + content[at:]


def requests(method: str, draw: random.Random, count: int) -> Iterator[bytes]:
    """Requests of a method: nothing, random bytes, random fields, damaged ones."""
    yield b""
    for _ in range(count):
        yield draw.randbytes(draw.randrange(1, 60))
        made = filled(request_class(method)(), draw).SerializeToString()
        yield made
        yield damaged(made, draw)


def absurd_tensors() -> Iterator[Message]:
    """TensorProtos that are none."""
    from penstock.defs.schema import TensorProto

    def tensor(*dims: int, dtype: int = 1, **fields: Any) -> Any:
        made = TensorProto(dtype=dtype, **fields)
        for size in dims:
            made.tensor_shape.dim.add(size=size)
        return made

    for size in ABSURD:
        yield tensor(size)
        yield tensor(size, tensor_content=b"\x00" * 8)
        yield tensor(size, size, float_val=[1.0])
        yield tensor(0, size)
    yield tensor(1 << 32, 1 << 32, float_val=[1.0])
    yield tensor(*[2] * 300, float_val=[1.0])
    yield tensor(3, tensor_content=b"\x00" * 11)
    yield tensor(3, tensor_content=b"\x00" * 16)
    yield tensor(2, float_val=[1.0, 2.0, 3.0])
    yield tensor(2, dtype=7, tensor_content=b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f")
    yield tensor(1 << 40, dtype=7)
    for dtype in (0, 20, 21, 99, 101, 1000):
        yield tensor(2, dtype=dtype, tensor_content=b"\x00" * 8)
    unknown = tensor(2, float_val=[1.0])
    unknown.tensor_shape.unknown_rank = True
    yield unknown
