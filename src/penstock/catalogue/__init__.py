"""What each op is: its signature, as one row of one table."""
