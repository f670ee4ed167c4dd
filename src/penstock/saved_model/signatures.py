"""Signatures: the functions of tensors by name that a model offers to the world.

In:   names and specifications of inputs and outputs, and what computes them.
Out:  callables from values by name to values by name.
Not:  knows neither generation of models; each says itself how its signatures are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Final, NamedTuple

from penstock.core.values import Value
from penstock.dataclass import dataclass
from penstock.errors import InvalidArgumentError, NotFoundError
from penstock.saved_model.arguments import MismatchError, bind, rebuild
from penstock.saved_model.structured import Spec, TensorSpec


class Endpoints(NamedTuple):
    """The tensors of a signature, by their names in the model's session."""

    #: Of all outputs; or a node to run, if there are none.
    fetches: Sequence[str]
    #: Of all inputs.
    feeds: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One signature, as the model describes it."""

    #: What each input is, in the order in which ``prepare``'s callable takes them.
    inputs: Mapping[str, Spec]
    #: What each output is, in the order in which the callable gives them.
    outputs: Mapping[str, Spec]
    #: Makes the callable: tensors of all inputs in, tensors of all outputs out.
    prepare: Callable[[], Callable[..., Sequence[Value]]]
    #: The names of all these tensors in the model's session.
    endpoints: Callable[[], Endpoints]
    #: The same with what the graph tells of their shapes; asked when somebody wants to see them.
    inferred: Callable[[], Mapping[str, Spec]] | None = None
    #: What inputs are that nobody gives.
    defaults: Mapping[str, Value] = field(default_factory=dict)
    #: TensorFlow Serving's name of what the signature is for, such as ``…/predict``.
    method: str = ""


class Signature:
    """A signature of a model; call it with its inputs by name."""

    def __init__(self, name: str, offer: Offer) -> None:
        self.name: Final = name
        #: Types and shapes by the names of inputs.
        self.inputs: Final = offer.inputs
        self._outputs: Final = offer.outputs
        self._infer: Final = offer.inferred
        #: What ``_infer`` said; of two threads that ask at once, either's will do.
        self._inferred: Mapping[str, Spec] | None = None
        #: Values of inputs that may be left out.
        self.defaults: Final = offer.defaults
        #: TensorFlow Serving's name of what it is for; may be empty.
        self.method: Final = offer.method
        self._prepare: Final = offer.prepare
        self._endpoints: Final = offer.endpoints
        #: What computes it, once it was called; of two that threads make at once, either will do.
        self._run: Callable[..., Sequence[Value]] | None = None
        self._names: Final = tuple(offer.inputs)
        specs = [*offer.inputs.values(), *offer.outputs.values()]
        self._is_plain: Final = all(isinstance(spec, TensorSpec) for spec in specs)

    @property
    def outputs(self) -> Mapping[str, Spec]:
        """Types and shapes by the names of outputs.

        Where the model leaves sizes open, they are those that follow from its graph, which is gone
        through when this is first asked for.
        """
        if self._inferred is None:
            self._inferred = self._outputs if self._infer is None else self._infer()
        return self._inferred

    def __call__(self, /, **given: Any) -> dict[str, Any]:
        """Compute the outputs.

        Args:
            **given: arrays, numbers, texts or lists of them; RaggedTensor and SparseTensor where
                the inputs are such.

        Returns:
            Arrays by the names of outputs; numpy scalars for rank 0, ``bytes`` and arrays of them
            for strings, RaggedTensor and SparseTensor where the outputs are such.

        Raises:
            InvalidArgumentError: an input is missing, unknown, or of another type or shape.
            UnimplementedError: ops are needed that have no kernels; all of them are listed.
            OpError: like ``Session.run``.

        """
        run = self._run
        if run is None:
            run = self._run = self._prepare()
        if given.keys() != self.inputs.keys():
            given = self._completed(given)
        if self._is_plain:
            results = run(*[given[name] for name in self._names])
            return dict(zip(self._outputs, results, strict=True))
        found = iter(run(*self._flat(given)))
        return {name: rebuild(spec, found) for name, spec in self._outputs.items()}

    def request(self, /, **given: Any) -> tuple[list[str], dict[str, Value]]:
        """What to ask of the model's session instead: to trace it, or to look into it.

        Args:
            **given: as for a call.

        Returns:
            What to fetch, and what to feed: ``session.run(*signature.request(x=…))`` gives the
            tensors of all outputs, in their order.

        Raises:
            OpError: as of a call, for what can be said before it runs.

        """
        fetches, feeds = self._endpoints()
        return list(fetches), dict(zip(feeds, self._flat(self._completed(given)), strict=True))

    def _completed(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What is given, with defaults for what is not."""
        unknown = [name for name in given if name not in self.inputs]
        missing = [n for n in self.inputs if n not in given and n not in self.defaults]
        if unknown or missing:
            wrong = f"has no input {unknown[0]!r}" if unknown else f"wants the input {missing[0]!r}"
            raise InvalidArgumentError(f"the signature {self.name!r} {wrong}", next_step=f"{self}")
        return {**self.defaults, **given}

    def _flat(self, given: Mapping[str, Any]) -> Iterator[Any]:
        for name, spec in self.inputs.items():
            try:
                yield from bind(spec, given[name], is_strict=False, where=name)
            except MismatchError as error:
                raise InvalidArgumentError(
                    f"signature {self.name!r}: {error}", next_step=f"{self}"
                ) from None

    def __str__(self) -> str:
        optional = dict.fromkeys(self.defaults, " (optional)")
        inputs = [f"{name}: {spec}{optional.get(name, '')}" for name, spec in self.inputs.items()]
        outputs = [f"{name}: {spec}" for name, spec in self.outputs.items()]
        return f"{self.name}({', '.join(inputs)}) -> {{{', '.join(outputs)}}}"

    def __repr__(self) -> str:
        return f"<signature {self}>"


class Signatures(Mapping[str, Signature]):
    """The signatures of a model by name."""

    def __init__(self, offers: Mapping[str, Offer], others: Callable[[], str]) -> None:
        """Know what a model offers.

        Args:
            offers: signatures by name.
            others: a text that says what else can be called, for errors.

        """
        self._signatures: Final = {name: Signature(name, offer) for name, offer in offers.items()}
        self._others: Final = others

    def __getitem__(self, name: str) -> Signature:
        """A signature; raises NotFoundError, a KeyError as well, that lists what there is."""
        found = self._signatures.get(name)
        if found is None:
            listed = ", ".join(self) or "none"
            raise NoSuchSignatureError(
                f"The model has no signature {name!r}; it has {listed}", next_step=self._others()
            )
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._signatures)

    def __len__(self) -> int:
        return len(self._signatures)

    def __repr__(self) -> str:
        return f"<{len(self)} signatures: {'; '.join(map(str, self.values()))}>"


class NoSuchSignatureError(NotFoundError, KeyError):
    """A model has no signature of a name."""
