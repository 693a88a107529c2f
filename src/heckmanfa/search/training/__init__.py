"""Training of the assignment function, on the device that holds the rows.

`training_rows` gathers the rows that epochs read, `loss` has an assignment's fit and the gradient
of its loss, `loop` repeats a step without waiting, and `fused` and `kernel` read a GPU's rows once
per epoch.
"""
