"""Graphs and who runs them."""
