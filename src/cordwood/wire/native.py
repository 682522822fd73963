"""What this build has in C (``native/``): ``native`` is that module, or None. Whoever uses it can do without.

The sources as they are have none (see setup.py), nor has an interpreter that is not the process's first. Some of its
functions are there on some systems and processors alone: ask with ``getattr(native, name, instead)``.
"""

try:
    import cordwood.wire._native as native
except ModuleNotFoundError:
    native = None  # type: ignore[assignment]

__all__ = ["native"]
