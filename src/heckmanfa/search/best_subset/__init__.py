"""The best of all assignments, by branch and bound."""
