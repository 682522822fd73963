"""A replicated state machine over a partition of an internal topic; ``group`` is one, transactions will be another.

The basic rule: a handler looks at the state and returns an ``Outcome``, that is, records and replies. The shard appends
the records, applies them to the state (with the same code as loading does), and releases the replies when everything
they depend on is committed. Nothing else changes the durable state.
"""
