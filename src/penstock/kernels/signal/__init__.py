"""Sound and spectra."""
