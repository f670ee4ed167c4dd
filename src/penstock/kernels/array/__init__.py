"""Arrays taken apart, put together, looked at and looked up: no arithmetic."""
