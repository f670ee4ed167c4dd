"""Training that survives: sessions that are rebuilt, checkpoints that are always whole.

| what | where |
| --- | --- |
| a session that recovers, and calls hooks | ``monitored_session`` |
| how a session gets ready | ``scaffold`` |
| what is called around steps | ``hooks`` |
| checkpoints every so many steps or seconds | ``checkpoint_hook`` |
| variables into checkpoints, and back | ``saver`` |
| several workers' gradients as one update | ``sync_replicas`` |
"""

from __future__ import annotations

from penstock.training.checkpoint_hook import CheckpointSaverHook
from penstock.training.hooks import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
    StopAtStepHook,
)
from penstock.training.monitored_session import MonitoredSession, StepContext
from penstock.training.saver import Saver
from penstock.training.scaffold import Scaffold
from penstock.training.sync_replicas import SyncReplicas

__all__ = [
    "CheckpointSaverHook",
    "MonitoredSession",
    "Saver",
    "Scaffold",
    "SessionRunArgs",
    "SessionRunContext",
    "SessionRunHook",
    "SessionRunValues",
    "StepContext",
    "StopAtStepHook",
    "SyncReplicas",
]
