"""Values that travel as variants: lists, maps and optionals."""
