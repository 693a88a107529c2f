"""The scikit-learn classes: constructors, fit, and the methods people call."""
