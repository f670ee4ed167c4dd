"""Much work, and several cores for it."""
