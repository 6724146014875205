"""Comparisons of servers, and of load tools, which `make gallery` and `make rivals` write into results/reference."""
