"""Columns from two formulas, for the fit and for prediction; which stored formulas are safe."""
