"""The training of the assignment function where the rows are.

`rows` gathers the rows that epochs read, `terms` has an assignment's fit and the gradient of its
loss, `loop` repeats a step without waiting, and `fused` and `kernel` read a card's rows once an
epoch.
"""
