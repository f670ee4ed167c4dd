
%
aConst*
valueJa*
dtype0"