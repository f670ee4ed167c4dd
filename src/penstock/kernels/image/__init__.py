"""Images: in files, in other sizes and colours, parts of them, boxes around what is in them."""
