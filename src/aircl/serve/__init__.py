"""A service around one model: it learns, predicts and forgets over HTTP, and loses nothing. Needs `aircl[serve]`.

What comes in, in order: `guard` (who may), `limits` and `samples` (how much, and what), `routes`, then `gatherer`
(predictions, by one product) or `writer` (changes, one after the other). A change is durable by `journal` until a
checkpoint of the whole model is one of `versions`; `kept` has rows by their ids, if that is wanted. `solver` makes of
the model what predictions use, `drift` tells whether rows are still like those learned. Nothing here is imported by
others.
"""
