"""What a run says: assertions, printed values, summaries, debuggers' ops."""
