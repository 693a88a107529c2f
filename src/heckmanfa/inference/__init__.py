"""What a referee asks of a fitted selection model.

`bootstrap` and `honest` are about a search for the features, `uncertainty` and `what_if` about
assumptions that no data can prove, `specification` about those that data can refute, and
`margins` and `intervals` about what the estimates mean for the outcome. Each is a function of a
fitted model; `heckmanfa.estimators.inference_methods` makes them methods.
"""
