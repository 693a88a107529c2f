"""Training of the assignment function, on the device that holds the rows.

`training_rows` gathers the rows that epochs read, `loss` has an assignment's fit and the gradient
of its loss, and `gpu` repeats steps without waiting and reads a GPU's rows once per epoch.
"""
