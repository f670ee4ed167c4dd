"""What steps and loops hand to each other: queues, barriers, stages, stacks, arrays of tensors."""
