"""One process: from a prepared request to results."""
