o
m
1
#AddTwice]
x"T
y"P

chain"T"	
Ttype
syxTJT
T-JTç»z:*y0"

zt:z:0"™