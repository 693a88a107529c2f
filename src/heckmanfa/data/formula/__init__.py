"""Two formulas to columns, and again for prediction; which formulas of a file are safe."""
