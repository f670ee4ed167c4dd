"""The messages of TensorFlow's cluster protocol.

In:   ``cluster_messages.txt``, whose messages have those of ``messages.txt`` in them.
Out:  ``message_class``, which finds the class of a message such as ``RunStepRequest``.
Not:  gives messages no meaning.
"""

from __future__ import annotations

from penstock.defs.schema import extended

message_class = extended("cluster_messages.txt")
