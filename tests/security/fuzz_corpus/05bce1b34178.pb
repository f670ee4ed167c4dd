
3
bConst*
valueB"b*
dtypep"ª