"""Values of all nodes of a step: collected, kept, and compared with those of another one.

collected    every output of every node of a step
difference   how two values differ
compare      two steps, node by node, and the first that differs
dump_all     a step's values, as a checkpoint
"""
