"""All passes of the optimiser, in their order, and why that is the order.

In:   Penstock's own passes; and those that users register.
Out:  ``ordered_passes``; nothing else lists passes: options, drivers and pages ask here.
Not:  runs nothing, and knows no options but by their names.

Functions are opened before all else, so that passes see across their borders.  In-place ops
come next: they rely on an order that rewriting gives up.  Then passes rewrite in rounds, since
each may make work for the others.  Fusing and merging come last, once: they make none.  Merging
comes after fusing, since what was merged has several readers, and is not fused.  What ONNX
Runtime has ways of its own for is fused when its regions are taken out.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from penstock.core.forks import importing, process_lock
from penstock.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError
from penstock.graph.graph import Node
from penstock.kernels.c.library import library
from penstock.kernels.onnx import library as onnx_library
from penstock.passes.eliminate_common_subexpressions import eliminate_common_subexpressions
from penstock.passes.fold_batch_norm import SCALED, fold_batch_norm
from penstock.passes.fold_constants import fold_constants
from penstock.passes.fold_paddings import PADDED, fold_paddings
from penstock.passes.fuse_convolutions import FUSED, fuse_convolutions
from penstock.passes.fuse_gates import SPLITS, fuse_gates
from penstock.passes.fuse_layer_norms import MOMENTS, fuse_layer_norms
from penstock.passes.fuse_moments import DISTANCES, fuse_moments
from penstock.passes.fuse_scaled_softmax import SOFTMAXES, fuse_scaled_softmax
from penstock.passes.graph_pass import REWRITING, GraphPass, GraphProperty, PassInput, rewriting
from penstock.passes.graph_rewriter import GraphRewriter
from penstock.passes.mask_pooled_gradients import MASKS, mask_pooled_gradients
from penstock.passes.multiply_ahead import LIST_READERS, multiply_ahead
from penstock.passes.offload.heavy_ops import HEAVY
from penstock.passes.read_in_place import read_in_place
from penstock.passes.remove_identities import remove_identities
from penstock.passes.simplify_arithmetic import simplify_arithmetic
from penstock.passes.skip_unread import skip_unread
from penstock.passes.slice_directly import SLICES, slice_directly

_SETTLED: Final = frozenset({GraphProperty.SETTLED})
#: What looks for chains of nodes that nobody else reads.
_ALONE: Final = REWRITING | {GraphProperty.SETTLED, GraphProperty.SWEPT, GraphProperty.UNMERGED}
#: Products of which some are flattened.
_FLATTENED: Final = frozenset({"BatchMatMulV2", "MatMul"})


def _lower(given: PassInput) -> int:
    before = given.graph.next_id
    if given.lower is not None:
        given.device_of = given.lower(given.graph, given.device_of)
    return given.graph.next_id - before


def _read_in_place(given: PassInput) -> int:
    return read_in_place(given.graph, given.device_of)


def _fold_constants(given: PassInput) -> int:
    how = given.settings
    return fold_constants(given.draft, how.max_folded_bytes, how.host, flush=how.flush_denormals)


def _offload_regions(given: PassInput) -> int:
    if not (given.settings.accelerate and onnx_library.is_installed()):
        return 0
    # Imported when it is first wanted: it looks at shapes, whose rules are many.
    with importing:
        offload = importlib.import_module("penstock.passes.offload.offload_regions")
    how = given.settings
    return int(
        offload.offload_regions(
            given.draft, how.region_products, lambda: library() is not None, how.entries_at_once
        )
    )


def _flatten_products(given: PassInput) -> int:
    if not any(map(_may_be_flattened, given.graph)):
        return 0
    with importing:  # it looks at shapes, too
        flatten = importlib.import_module("penstock.passes.flatten_products")
    return int(flatten.flatten_products(given.draft))


def _may_be_flattened(node: Node) -> bool:
    """Whether a node is a product of batches, or gives one of matrices another shape."""
    op = node.op.name
    return op == "BatchMatMulV2" or (op == "Reshape" and node.input(0).src.op.name == "MatMul")


def _with_c(
    fuse: Callable[[GraphRewriter, Callable[[], bool]], int],
) -> Callable[[PassInput], int]:
    """A pass that asks, if it may have something to do, whether there are kernels in C."""

    def run(given: PassInput) -> int:
        accelerate = given.settings.accelerate
        return fuse(given.draft, lambda: accelerate and library() is not None)

    return run


#: Penstock's own passes.
BUILTIN_PASSES: Final = (
    GraphPass(
        name="lower",
        run=_lower,
        does="puts functions where they are called; If, Case and While that ask for it become "
        "Switch, Merge and loops whatever the option says, others if their functions only compute",
        never="what calls itself, has no kernel, or says `_noinline`",
        option="function_optimization",
        requires=frozenset({GraphProperty.AS_ORDERED}),
        provides=frozenset({GraphProperty.LOWERED}),
        invalidates=frozenset({GraphProperty.SWEPT}),
    ),
    GraphPass(
        name="read_in_place",
        run=_read_in_place,
        does="whoever comes after an in-place op reads what it wrote",
        never="readers that the graph does not order",
        is_optional=False,
        requires=frozenset({GraphProperty.AS_ORDERED, GraphProperty.LOWERED}),
        provides=frozenset({GraphProperty.WRITES_READ}),
        invalidates=frozenset(),
    ),
    GraphPass(
        name="remove_identities",
        run=rewriting(remove_identities),
        does="consumers read the input itself",
        never="after a Switch or Recv, of a reference, with control inputs",
        option="dependency_optimization",
        provides=_SETTLED,
    ),
    GraphPass(
        name="skip_unread",
        run=rewriting(skip_unread),
        does="what is only waited for is not computed; nor are, of a call that is fetched, results "
        "that nobody reads",
        never="what is asked for, has effects, or tells a branch or a frame",
        option="dependency_optimization",
        provides=_SETTLED,
    ),
    GraphPass(
        name="fold_constants",
        run=_fold_constants,
        does="runs once what depends on constants only",
        never="what fails, what is large, kernels of one's own",
        option="constant_folding",
        level_option="do_constant_folding",
        provides=_SETTLED,
        # It computes with numpy what the kernels in C might compute in a step.
        may_change_last_bits=True,
    ),
    GraphPass(
        name="simplify_arithmetic",
        run=rewriting(simplify_arithmetic),
        does="x · 1, −(−x), one Reshape of two",
        never="what changes a bit, a shape or a sign of zero",
        option="arithmetic_optimization",
        provides=_SETTLED,
    ),
    GraphPass(
        name="fold_batch_norm",
        run=rewriting(fold_batch_norm),
        starts_at=SCALED,
        does="scales and biases go into a constant filter",
        never="what somebody else reads",
        option="remapping",
        requires=REWRITING | {GraphProperty.UNMERGED},
        provides=_SETTLED,
        may_change_last_bits=True,
    ),
    GraphPass(
        name="slice_directly",
        run=rewriting(slice_directly),
        starts_at=SLICES,
        does="`x[:, i]` reads `i`, and not two vectors that are packed of it",
        never="of which other places depend on a step, too",
        option="remapping",
        requires=REWRITING | {GraphProperty.SETTLED, GraphProperty.SWEPT},
    ),
    GraphPass(
        name="mask_pooled_gradients",
        run=rewriting(mask_pooled_gradients),
        starts_at=MASKS,
        does="the gradient of a Relu comes before that of a MaxPool, where there are fewer numbers",
        never="gradients that others read, too",
        option="remapping",
        requires=REWRITING | {GraphProperty.SETTLED, GraphProperty.SWEPT},
        may_change_last_bits=True,
    ),
    GraphPass(
        name="fuse_gates",
        run=rewriting(fuse_gates),
        starts_at=SPLITS,
        does="the gates of a recurrent cell as one node: product, bias, parts, functions",
        never="what is no constant, or read by somebody else",
        option="remapping",
        requires=_ALONE,
        may_change_last_bits=True,
    ),
    GraphPass(
        name="multiply_ahead",
        run=rewriting(multiply_ahead),
        starts_at=LIST_READERS,
        does="a loop that multiplies a list's elements by a matrix multiplies many at once",
        never="elements of a list, or by a matrix, that changes in the loop; outside of loops",
        option="remapping",
        requires=REWRITING | {GraphProperty.SETTLED, GraphProperty.SWEPT},
        may_change_last_bits=True,
    ),
    GraphPass(
        name="fuse_moments",
        run=_with_c(fuse_moments),
        starts_at=DISTANCES,
        does="the mean of something along an axis, and the mean square of the distances from it, "
        "as one node",
        never="without kernels in C, where others read the squares",
        option="remapping",
        requires=_ALONE,
        may_change_last_bits=True,
    ),
    GraphPass(
        name="flatten_products",
        run=_flatten_products,
        starts_at=_FLATTENED,
        does="a product of batches by one matrix is one of two matrices; what is added to its "
        "columns is added at once, and not after a Reshape",
        never="in branches and loops, where sizes are not known, what others read",
        option="remapping",
        requires=_ALONE,
        may_change_last_bits=True,
    ),
    GraphPass(
        name="fuse_convolutions",
        run=_with_c(fuse_convolutions),
        starts_at=frozenset(FUSED),
        does="convolution, bias and activation as one node; where kernels in C compute it, the sum "
        "with another result, too",
        never="what has no kernel",
        option="remapping",
        requires=_ALONE,
        may_change_last_bits=True,
    ),
    GraphPass(
        name="fold_paddings",
        run=rewriting(fold_paddings),
        starts_at=PADDED,
        does="a convolution puts zeros around what it sees, instead of a Pad before it",
        never="other paddings than of rows and columns, what others read",
        option="remapping",
        requires=_ALONE,
        may_change_last_bits=True,
    ),
    GraphPass(
        name="eliminate_common_subexpressions",
        run=rewriting(eliminate_common_subexpressions),
        does="computes equal things once",
        never="effects, references, other waits or devices",
        option="common_subgraph_elimination",
        level_option="do_common_subexpression_elimination",
        requires=REWRITING | {GraphProperty.SETTLED, GraphProperty.SWEPT},
        invalidates=frozenset(
            {GraphProperty.AS_ORDERED, GraphProperty.SWEPT, GraphProperty.UNMERGED}
        ),
    ),
    GraphPass(
        name="offload_regions",
        run=_offload_regions,
        starts_at=HEAVY,
        does="regions of heavy work as one node each, which ONNX Runtime computes",
        never="without the extra `accelerate`, in branches and loops, small work",
        option="remapping",
        requires=REWRITING | {GraphProperty.SETTLED, GraphProperty.SWEPT},
        invalidates=frozenset(
            {GraphProperty.AS_ORDERED, GraphProperty.SWEPT, GraphProperty.UNMERGED}
        ),
        may_change_last_bits=True,
    ),
    GraphPass(
        name="fuse_layer_norms",
        run=_with_c(fuse_layer_norms),
        starts_at=MOMENTS,
        does="a normalisation by rows, the sum before it, its scale and offset as one node",
        never="without kernels in C, of which others read a part; regions of ONNX Runtime",
        option="remapping",
        requires=REWRITING | {GraphProperty.SETTLED, GraphProperty.SWEPT},
    ),
    GraphPass(
        name="fuse_scaled_softmax",
        run=_with_c(fuse_scaled_softmax),
        starts_at=SOFTMAXES,
        does="a softmax and the number that its input is multiplied by as one node",
        never="without kernels in C, products that others read; regions of ONNX Runtime",
        option="remapping",
        requires=REWRITING | {GraphProperty.SETTLED, GraphProperty.SWEPT},
    ),
)

#: Held while the next is replaced.  Innermost.
_lock: Final = process_lock()
#: All passes in their order, in its one element, which is replaced and never changed: read
#: without the lock.
_order: Final[list[tuple[GraphPass, ...]]] = [BUILTIN_PASSES]


def ordered_passes() -> tuple[GraphPass, ...]:
    """All passes in the order in which they run."""
    return _order[0]


def add_pass(new: GraphPass) -> None:
    """Put a pass into the order, as late as what it requires and invalidates allows.

    Raises:
        AlreadyExistsError: another pass has the name.
        InvalidArgumentError: it has no place in the order.

    """
    with _lock:
        if any(known.name == new.name for known in _order[0]):
            raise AlreadyExistsError(
                f"A pass called '{new.name}' is registered already",
                next_step="give it another name, or call ps.unregister_pass before",
            )
        order = _in_order([*_own(_order[0]), new])
        if order is None:
            raise InvalidArgumentError(
                f"There is no place for the pass '{new.name}': what it requires is not true "
                "there, or it would break what others require",
                next_step="docs/add-a-pass.md says what each pass requires and invalidates",
            )
        _order[0] = order


def remove_pass(name: str) -> None:
    """Forget a pass that was added.

    Raises:
        NotFoundError: none of that name was.

    """
    with _lock:
        left = [known for known in _own(_order[0]) if known.name != name]
        if len(left) == len(_own(_order[0])):
            raise NotFoundError(
                f"No pass called '{name}' was registered",
                next_step="Penstock's own passes are switched off by options",
            )
        _order[0] = _in_order(left) or BUILTIN_PASSES  # what had an order still has one


def _own(passes: Iterable[GraphPass]) -> list[GraphPass]:
    """What users registered, in the order of their registration or in that of running."""
    return [known for known in passes if not known.is_builtin]


def _in_order(added: Sequence[GraphPass]) -> tuple[GraphPass, ...] | None:
    """Penstock's passes as they are, each of the others as late as may be; None if none may."""
    left, ours, order = list(added), list(BUILTIN_PASSES), list[GraphPass]()
    while left or ours:  # from the last to the first
        candidates = [*reversed(left), *ours[-1:]]
        last = next((one for one in candidates if _may_be_last(one, [*left, *ours])), None)
        if last is None:
            return None
        (ours if last.is_builtin else left).remove(last)
        order.append(last)
    return tuple(reversed(order))


def _may_be_last(one: GraphPass, others: Iterable[GraphPass]) -> bool:
    return not any(other.must_follow(one) for other in others if other is not one)
