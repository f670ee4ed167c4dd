"""The dataflow tier: runs one partition, node by node, as its inputs arrive.

``graph_view`` holds what is known before a step, ``state`` what changes during one,
``params`` what an executor is given, ``propagate`` the rules by which values and deadness
travel, ``executor`` the driver that calls kernels, with ``references`` on their way in and
``outputs`` on their way out, ``barrier`` the end of several executors, and ``dump`` the
answer to *why does this step hang?*
"""
