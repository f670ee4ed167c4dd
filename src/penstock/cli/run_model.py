"""``penstock run`` of a model: a signature's inputs in, its outputs out.

In:   what the options of TensorFlow's ``saved_model_cli run`` say.
Out:  values on stdout, or files.
Not:  reads no pickles, and evaluates no Python.
"""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from penstock.cli.expressions import evaluate
from penstock.cli.feed_values import read_value
from penstock.cli.fetched import print_values, write_values
from penstock.cli.model_file import parsed_tags, signature_in
from penstock.cli.request import Request
from penstock.cli.signature_inputs import check_given, input_spec, parse_inputs
from penstock.dataclass import dataclass
from penstock.defs.schema import Example
from penstock.errors import AlreadyExistsError, InvalidArgumentError, UnimplementedError
from penstock.saved_model.composites import RaggedTensor, SparseTensor
from penstock.saved_model.loaded_model import LoadedModel
from penstock.saved_model.signatures import Signature
from penstock.saved_model.structured import TensorSpec

_FILE: Final = re.compile(r"([^\[\]]+?)(?:\[([^\[\]]+)\])?")
_PICKLE: Final = ("pkl", "pickle")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRun:
    """What is to be run, and with what."""

    #: Whose feeds are of a signature's inputs.
    request: Request
    #: ``NAME=FILE[KEY];…``
    inputs: str
    #: ``NAME=EXPRESSION;…``
    input_exprs: str
    #: ``NAME=[{feature: values}, …];…``
    input_examples: str
    #: Where to write a file per output; None to print.
    outdir: Path | None
    overwrite: bool
    #: Where to write all outputs as one file; None for none.
    out: Path | None
    repeat: int

    def run(self) -> list[float]:
        """Run it and hand the outputs out; returns the seconds of each run."""
        of = self.request
        with LoadedModel(of.stored, parsed_tags(of.tag_set), config=of.config) as model:
            _, signature = signature_in(model.signatures, of.signature_def)
            given = self._given(signature)
            check_given(given, signature, of.path)
            seconds = []
            outputs: dict[str, Any] = {}
            for _ in range(self.repeat):
                start = time.perf_counter()
                outputs = signature(**given)
                seconds.append(time.perf_counter() - start)
        self._hand_out(dict(_plain(outputs)))
        return seconds

    def _given(self, signature: Signature) -> dict[str, Any]:
        """Inputs by name, from all the options that give some; the later option wins."""
        found: dict[str, Any] = {}
        for name, text in _pairs(self.inputs, "--inputs"):
            found[name] = _file(text, name, input_spec(signature, name))
        for name, text in _pairs(self.input_exprs, "--input_exprs"):
            input_spec(signature, name)
            found[name] = evaluate(text)
        for name, text in _pairs(self.input_examples, "--input_examples"):
            input_spec(signature, name)
            found[name] = _examples(text)
        return {**found, **parse_inputs(self.request.feeds, signature)}

    def _hand_out(self, outputs: Mapping[str, Any]) -> None:
        if self.outdir is not None:
            self._write_each(self.outdir, outputs)
        if self.out is not None:
            write_values(self.out, outputs)
        if self.out is None and self.outdir is None:
            print_values(outputs)

    def _write_each(self, folder: Path, outputs: Mapping[str, Any]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        files = {name: folder / f"{_file_name(name)}.npy" for name in outputs}
        taken = [str(path) for path in files.values() if path.exists()]
        if taken and not self.overwrite:
            raise AlreadyExistsError(
                f"{taken[0]} is there already", next_step="--overwrite replaces such files"
            )
        for name, path in files.items():
            write_values(path, {name: outputs[name]})


def _pairs(text: str, option: str) -> Iterable[tuple[str, str]]:
    """``NAME=TEXT`` for each part between semicolons."""
    for part in filter(str.strip, text.split(";")):
        name, equals, value = part.partition("=")
        if not name.strip() or not equals:
            raise InvalidArgumentError(
                f"{option}: '{part}' is not NAME=VALUE", next_step=f"write {option} 'x=…;y=…'"
            )
        yield name.strip(), value.strip()


def _file(text: str, name: str, spec: TensorSpec) -> Any:
    """The array that ``FILE`` or ``FILE[KEY]`` means."""
    found = _FILE.fullmatch(text)
    if found is None:
        raise InvalidArgumentError(f"--inputs: '{text}' is neither FILE nor FILE[KEY]")
    path, key = found[1], found[2]
    if path.rpartition(".")[2] in _PICKLE:
        raise UnimplementedError(
            f"{path} is a pickle, which may run anything when it is read",
            next_step="save the array by numpy.save, and give the .npy file",
        )
    return read_value(f"{path}:{key}" if key else path, name, spec.dtype, spec.shape)


def _examples(text: str) -> list[bytes]:
    """Serialized tf.Example messages, of a list of dictionaries from features to their values."""
    try:
        examples = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        examples = None
    if not isinstance(examples, list) or not all(isinstance(one, dict) for one in examples):
        raise InvalidArgumentError(
            f"--input_examples: {text!r} is no list of dictionaries",
            next_step='write \'inputs=[{"age": [22, 24], "name": ["Ada"]}]\'',
        )
    return [_example(one) for one in examples]


def _example(features: Mapping[str, Any]) -> bytes:
    example = Example()
    for name, values in features.items():
        if not isinstance(values, list) or not values:
            raise InvalidArgumentError(f"the feature {name!r} of an example must be a list")
        feature, kind = example.features.feature[name], type(values[0])
        try:
            if kind is float:
                feature.float_list.value.extend(values)
            elif kind is int:
                feature.int64_list.value.extend(values)
            else:
                feature.bytes_list.value.extend(map(_as_bytes, values))
        except (TypeError, ValueError, AttributeError) as cause:
            raise InvalidArgumentError(f"the feature {name!r} cannot hold {values!r}") from cause
    return bytes(example.SerializeToString())


def _as_bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode()


def _plain(outputs: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    """Outputs as arrays: those of several parts under several names."""
    for name, value in outputs.items():
        if isinstance(value, RaggedTensor):
            yield f"{name}.values", value.values
            for place, splits in enumerate(value.row_splits):
                yield f"{name}.row_splits_{place}", splits
        elif isinstance(value, SparseTensor):
            for part in ("indices", "values", "dense_shape"):
                yield f"{name}.{part}", getattr(value, part)
        else:
            yield name, value


def _file_name(name: str) -> str:
    """The name of an output as that of a file, which stays in its folder."""
    if re.search(r"[/\\:\0]", name) or name in ("", ".", ".."):
        raise InvalidArgumentError(f"the output {name!r} cannot be the name of a file")
    return name
