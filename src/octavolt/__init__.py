"""octavolt plans, trains, evaluates, deploys, explains and meters eight deep networks."""

__version__ = "0.1.0"
