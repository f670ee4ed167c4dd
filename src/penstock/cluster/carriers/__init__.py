"""What brings the tasks of a cluster to where they run, and keeps them there.

| what | where |
| --- | --- |
| the protocol: five methods | ``carrier`` |
| what it does with a cluster: start, watch, start anew, end | ``launched`` |
| processes of this machine | ``local_processes`` |
| actors of Ray | ``ray_actors`` |
| what SLURM, Kubernetes or ``TF_CONFIG`` have started already | ``environment_tasks`` |

Tensors never go by a carrier: tasks send them to each other.
"""
