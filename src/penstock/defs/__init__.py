"""TensorFlow's messages: their schema, and the way between messages and Python values."""
