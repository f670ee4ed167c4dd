"""Kinds of resources: what we call them, and what TensorFlow does.

In:   our name of a kind, or TensorFlow's in the message of a handle.
Out:  the other one.
Not:  knows no resources; a kind that is in no table is called the same by both.

TensorFlow's name is that of a C++ class as its compiler writes it, by the rules of the Itanium
C++ ABI: each part of the name after its length.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_CLASSES: Final[Mapping[str, str]] = {
    "Accumulator": "tensorflow::ConditionalAccumulatorBase",
    "Barrier": "tensorflow::barrier::Barrier",
    "IteratorResource": "tensorflow::data::IteratorResource",
    "LookupTable": "tensorflow::lookup::LookupInterface",
    "Queue": "tensorflow::QueueInterface",
    "Reader": "tensorflow::ReaderInterface",
    "SeedGenerator": "tensorflow::data::SeedGeneratorManager",
    "Stack": "tensorflow::Stack",
    "SummaryWriterInterface": "tensorflow::SummaryWriterInterface",
    "TensorArray": "tensorflow::TensorArray",
    "Var": "tensorflow::Var",
    # What has no name for a programmer has this one for the compiler.
    "mutex": "tensorflow::_GLOBAL__N_1::Mutex",
}


def _mangled(name: str) -> str:
    return f"N{''.join(f'{len(part)}{part}' for part in name.split('::'))}E"


_THEIRS: Final[Mapping[str, str]] = {ours: _mangled(name) for ours, name in _CLASSES.items()}
_OURS: Final[Mapping[str, str]] = {theirs: ours for ours, theirs in _THEIRS.items()}


def their_name(kind: str) -> str:
    """What TensorFlow calls a kind: ``N10tensorflow3VarE`` for ``Var``."""
    return _THEIRS.get(kind, kind)


def our_name(kind: str) -> str:
    """What we call it: ``Var`` for ``N10tensorflow3VarE``."""
    return _OURS.get(kind, kind)
