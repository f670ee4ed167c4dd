o
m
1
AddTwice
x"T
y"P

chain"T"	
Ttype
syxy*
TJT
TJTs:z:*y0"

zt:z:0"