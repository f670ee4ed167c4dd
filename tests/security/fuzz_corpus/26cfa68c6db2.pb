
.
xPˆæ‰žlaC