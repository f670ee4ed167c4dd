"""The SavedModels of ``tests/saved_models``, as TensorFlow makes them; see ``recipe``."""
