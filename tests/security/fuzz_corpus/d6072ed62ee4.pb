

xPlaceholder*
dtype0

yNegx"x*
T0e0"