"""What a step did and when: events, what they mean, and files that other programs show.

| what | where |
| --- | --- |
| what the runtime calls while a step is recorded | ``recorder``, ``watching`` |
| outputs, noted without keeping them alive | ``described`` |
| which node a compiled function is at, now and then | ``sampler`` |
| what was recorded, as facts | ``trace`` |
| events → ``Trace`` | ``replay``, ``buffers``, ``spans`` |
| StepStats messages → ``Trace`` | ``from_step_stats`` |
| ``Trace`` → StepStats | ``step_stats`` |
| ``Trace`` → tracks of slices | ``tracks`` |
| tracks → files | ``chrome``, ``perfetto``, ``event_files``, ``save`` |
"""
