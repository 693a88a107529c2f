"""Best-subset search by branch and bound, with a proof that no assignment is better."""
