"""What the cases run, each function in a process of its own."""
