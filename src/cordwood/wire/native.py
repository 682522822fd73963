"""What this build has in C (``native/``): ``native`` is that module, or None. All callers can do without it.

An uncompiled source tree has none (see setup.py), nor do subinterpreters. Some functions exist only on certain systems
or processors: ask with ``getattr(native, name, instead)``.
"""

try:
    import cordwood.wire._native as native
except ModuleNotFoundError:
    native = None  # type: ignore[assignment]

__all__ = ["native"]
