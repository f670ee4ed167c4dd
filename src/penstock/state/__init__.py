"""What outlives one node: devices, named resources, values in transit."""
