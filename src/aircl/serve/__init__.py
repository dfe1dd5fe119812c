"""A service around one model: it learns, predicts and forgets over HTTP, and loses nothing. Needs `aircl[serve]`.

What comes in, in order: `guard` (who may), `limits` (how much), `app` (routes), then either `gatherer` (predictions,
by one product) or `writer` (changes, one after the other). A change is durable by `journal` until a checkpoint of the
whole model is one of `versions`; `solver` makes of the model what predictions use. Nothing here is imported by others.
"""
