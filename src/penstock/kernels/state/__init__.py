"""Variables of both generations, and handles that lead to them."""
