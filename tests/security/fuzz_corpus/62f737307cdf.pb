

xPlaceholder*
dtype0"ª*
T0