"""A replicated state machine over a partition of an internal topic; ``group`` is one, transactions will be another.

The rule of the house: a handler looks at the state and returns an ``Outcome``, that is records and replies. The shard
appends the records, applies them to the state (``replay``: the same road that loading takes), and lets the replies go
when all that they rest on is committed. Nothing else changes what is durable.
"""
