"""Numbers of 16 bits, float16 and bfloat16, and arithmetic with them in float32.

``conversions`` has the one type as the other, with the help of ``half_floats`` where there is no
library in C, and ``precision`` formulas that round after each step.
"""
