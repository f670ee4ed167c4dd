"""Options on the wire: those that TensorFlow's messages have.

In:   a ``Config`` or ``RunOptions``; or the message of one.
Out:  the message; or the same options again.
Not:  Penstock's own options do not travel: those of a server are its own.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from penstock.config import Config, GraphOptions, RunOptions, Toggle
from penstock.defs.schema import ConfigProto, Message
from penstock.defs.schema import RunOptions as RunOptionsProto
from penstock.errors import InvalidArgumentError

#: What a ConfigProto cannot say.
OWN_OPTIONS: Final = (
    "ready_order_seed", "offload_seconds", "keep_freed_memory", "tier", "accelerate",
    "allow_files", "exact_repetition", "adaptive", "flush_denormals", "check_outputs",
    "check_graphs", "max_memory_in_bytes", "limits",
)  # fmt: skip
#: Options that the message has under the same name.
_SAME: Final = (
    "device_count", "allow_soft_placement", "log_device_placement",
    "intra_op_parallelism_threads", "inter_op_parallelism_threads", "use_per_session_threads",
    "operation_timeout_in_ms",
)  # fmt: skip
_EXPERIMENTAL: Final = (
    "disable_output_partition_graphs", "optimize_for_static_graph",
    "disable_functional_ops_lowering",
)  # fmt: skip


def config_of(proto: Message, server: Config) -> Config:
    """The options of a session: what its client says, and the server's own.

    Raises:
        InvalidArgumentError: an option makes no sense.

    """
    own = {name: getattr(server, name) for name in OWN_OPTIONS}
    return dataclasses.replace(Config.of(proto), **own)


def config_to_proto(config: Any) -> Message:
    """A ConfigProto of a ``Config``; any other message of one as it is."""
    if config is not None and not isinstance(config, Config):
        content = config if isinstance(config, bytes) else config.SerializeToString()
        return ConfigProto.FromString(content)
    config = Config.of(config)
    proto = ConfigProto(**{name: getattr(config, name) for name in _SAME})
    for name in _EXPERIMENTAL:
        setattr(proto.experimental, name, getattr(config, name))
    for pool in config.session_inter_op_thread_pool:
        proto.session_inter_op_thread_pool.add(
            num_threads=pool.num_threads, global_name=pool.global_name
        )
    proto.graph_options.place_pruned_graph = config.place_pruned_graph
    _write_graph_options(proto.graph_options, config.graph_options)
    return proto


def _write_graph_options(proto: Message, options: GraphOptions) -> None:
    proto.build_cost_model = options.build_cost_model
    proto.build_cost_model_after = options.build_cost_model_after
    for field in dataclasses.fields(options.optimizer_options):
        setattr(proto.optimizer_options, field.name, getattr(options.optimizer_options, field.name))
    for field in dataclasses.fields(options.rewrite_options):
        value = getattr(options.rewrite_options, field.name)
        if value not in (Toggle.DEFAULT, False):
            setattr(proto.rewrite_options, field.name, value)


def options_to_proto(options: RunOptions) -> Message:
    """A RunOptions message.

    Raises:
        InvalidArgumentError: an option is given of which the message cannot speak.

    """
    known, usual = RunOptionsProto.DESCRIPTOR.fields_by_name, RunOptions()
    proto = RunOptionsProto()
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        if field.name in known:
            setattr(proto, field.name, value)
        elif value != getattr(usual, field.name):
            raise InvalidArgumentError(
                f"RunOptions.{field.name} is for steps in this process, and this one runs in others"
            )
    return proto
