"""Training of the assignment function, on the device that holds the rows.

`gradient` gathers the rows that epochs read and has the gradient of an assignment's loss; `gpu`
repeats steps without waiting, and reads a GPU's rows once per epoch.
"""
