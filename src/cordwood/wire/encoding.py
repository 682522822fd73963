"""From a declaration to the source of a function that encodes one version of it.

The function collects pieces and joins them once. Adjacent values of fixed size, and the length that follows them, are
packed by one ``struct`` call. Records are the exception to joining: slices of files, and long runs of bytes, become
chunks of their own, with one ``bytes`` between two of them.

A message that its version cannot carry (null where that is not allowed, a number too large) is a bug in Cordwood: it
fails an assertion.
"""

from struct import error as struct_error
from struct import pack

from . import runtime
from .source import Source
from .types import NO_UUID, RECORDS, STRING, UUID_BYTES, FieldSpec, MessageSpec, Scalar

_CONSTANTS: dict[str, object] = {
    "SMALL": runtime.SMALL_UVARINTS,
    "join": b"".join,
    "pack": pack,
    "put_records": runtime.put_records,
    "records_length": runtime.records_length,
    "struct_error": struct_error,
    "uvarint": runtime.uvarint,
}


def encoder_source(spec: MessageSpec, version: int) -> Source:
    """The function ``encode(message) -> chunks`` of one version."""
    writer = _Writer(spec, version)
    out = writer.out
    with out.block("def encode(m):"):
        out.line("parts = []; w = parts.append")
        with_records = _has_records(spec, version)
        if with_records:
            out.line("chunks = []")
        with out.block("try:"):
            writer.struct(spec, "m")
            writer.flush()
        with out.block("except (AttributeError, TypeError, struct_error) as error:"):
            out.line(f"raise AssertionError(f'{spec.name} v{version} cannot carry this message: {{error}}') from error")
        if with_records:
            out.line("if parts: chunks.append(join(parts))")
            out.line("return chunks")
        else:
            out.line("return [join(parts)]")
    return out


def _has_records(spec: MessageSpec, version: int) -> bool:
    return any(_are_records(field.type, version) for field in spec.present(version))


def _are_records(kind: Scalar | MessageSpec, version: int) -> bool:
    return _has_records(kind, version) if isinstance(kind, MessageSpec) else kind is RECORDS


class _Writer:
    def __init__(self, spec: MessageSpec, version: int) -> None:
        self.out = Source(_CONSTANTS)
        self.version = version
        self.flexible = version in spec.flexible
        # What the next struct call will pack: format codes and expressions ("x", a zero byte, has none).
        self.run: list[tuple[str, str]] = []

    def flush(self) -> None:
        """Write the values collected in ``run``."""
        run, self.run = self.run, []
        if run:
            self.out.line(f"w({self.packed(run)})")

    def packed(self, run: list[tuple[str, str]]) -> str:
        """The expression that packs *run*."""
        if all(code == "x" for code, _ in run):
            return repr(bytes(len(run)))
        name, _ = self.out.packer("".join(code for code, _ in run), "pack")
        return f"{name}({', '.join(value for _, value in run if value)})"

    def struct(self, spec: MessageSpec, var: str) -> None:
        for field in spec.plain(self.version):
            self.field(field, f"{var}.{field.name}")
        if self.flexible:
            self.tags(spec.tagged(self.version), var)

    def field(self, spec: FieldSpec, value: str) -> None:
        null = self.version in spec.null
        if spec.array:
            self.array(spec, value, null=null)
        elif isinstance(spec.type, MessageSpec):
            self.nested(spec.type, value, null=null, tagged=spec.tag is not None)
        else:
            self.scalar(spec.type, value, null=null, compact=self.flexible and spec.compact)

    def scalar(self, kind: Scalar, value: str, *, null: bool, compact: bool) -> None:
        if kind is UUID_BYTES:
            self.run.append(("16s", f"{value}.int.to_bytes(16, 'big')"))
        elif kind.fixed:
            self.run.append((kind.code, value))
        elif kind is RECORDS:
            self.records(value, null=null, compact=compact)
        else:
            self.sized(kind, value, null=null, compact=compact)

    def sized(self, kind: Scalar, value: str, *, null: bool, compact: bool) -> None:
        """A string or bytes: a length, then that many bytes."""
        out, data, n = self.out, self.out.local("data"), self.out.local("n")
        encoded = f"{value}.encode()" if kind is STRING else value
        if null:
            out.line(f"{data} = {value}")
            out.line(f"if {data} is None: {n} = {0 if compact else -1}; {data} = b''")
            again = f"{data} = {data}.encode(); " if kind is STRING else ""
            out.line(f"else: {again}{n} = len({data}){' + 1' if compact else ''}")
        else:
            out.line(f"{data} = {encoded}; {n} = len({data}){' + 1' if compact else ''}")
        self.length("h" if kind is STRING else "i", n, compact=compact, string=kind is STRING)
        out.line(f"w({data})")

    def length(self, code: str, n: str, *, compact: bool, string: bool = False) -> None:
        """Write a length or a count together with the values collected before it."""
        run, self.run = self.run, []
        if not compact:
            self.out.line(f"w({self.packed([*run, (code, n)])})")
            return
        short = self.packed([*run, ("B", n)]) if run else f"SMALL[{n}]"
        self.out.line(f"if {n} < 128: w({short})")
        with self.out.block("else:"):
            if string:
                self.out.line(
                    f"if {n} > {runtime.STRING_LENGTH_MAX + 1}: raise TypeError(f'string of {{{n} - 1}} bytes')"
                )
            if run:
                self.out.line(f"w({self.packed(run)})")
            self.out.line(f"w(uvarint({n}))")

    def records(self, value: str, *, null: bool, compact: bool) -> None:
        out, data, n = self.out, self.out.local("data"), self.out.local("n")
        out.line(f"{data} = {value}")
        if null:
            out.line(f"if {data} is None: {n} = {0 if compact else -1}; {data} = b''")
        out.line(f"{'else: ' if null else ''}{n} = records_length({data}){' + 1' if compact else ''}")
        self.length("i", n, compact=compact)
        out.line(f"if {data}: parts = put_records({data}, parts, chunks); w = parts.append")

    def array(self, spec: FieldSpec, value: str, *, null: bool) -> None:
        out, items, n = self.out, self.out.local("items"), self.out.local("n")
        compact, kind = self.flexible, spec.type
        out.line(f"{items} = {value}")
        count = f"len({items}){' + 1' if compact else ''}"
        if null:
            out.line(f"if {items} is None: {n} = {0 if compact else -1}; {items} = ()")
        out.line(f"{'else: ' if null else ''}{n} = {count}")
        self.length("i", n, compact=compact)
        if isinstance(kind, Scalar) and kind.fixed and kind is not UUID_BYTES:
            self.fixed_array(kind, items)
            return
        item = out.local("item")
        with out.block(f"for {item} in {items}:"):
            if isinstance(kind, MessageSpec):
                self.struct(kind, item)
            else:
                self.scalar(kind, item, null=False, compact=compact)
            self.flush()

    def fixed_array(self, kind: Scalar, items: str) -> None:
        methods = runtime.short_arrays(kind.code, "pack")
        short = self.out.constant(f"short_{kind.code}".replace("?", "bool"), methods, key=("short", kind.code))
        long = f"pack(f'>{{len({items})}}{kind.code}', *{items})"
        self.out.line(f"w({short}[len({items})](*{items}) if len({items}) < {len(methods)} else {long})")

    def nested(self, spec: MessageSpec, value: str, *, null: bool, tagged: bool) -> None:
        """A struct in a struct. If it can be null, a byte says whether it is there: 1 if so, else -1 (0 in a tag)."""
        item = self.out.local("item")
        self.out.line(f"{item} = {value}")
        if not null:
            self.struct(spec, item)
            return
        self.flush()
        with self.out.block(f"if {item} is None:"):
            self.out.line("w(b'\\0')" if tagged else "w(b'\\xff')")
        with self.out.block("else:"):
            self.run.append(("b", "1"))
            self.struct(spec, item)
            self.flush()

    def tags(self, tagged: list[tuple[int, FieldSpec]], var: str) -> None:
        """The tagged fields at the end of a struct: only those that differ from their default."""
        if not tagged:
            self.run.append(("x", ""))
            return
        self.flush()
        out, count, before = self.out, self.out.local("count"), self.out.local("before")
        sent = [out.local("sent") for _ in tagged]
        for (_, field), name in zip(tagged, sent, strict=True):
            out.line(f"{name} = {self.differs(field, f'{var}.{field.name}')}")
        with out.block(f"if {' or '.join(sent)}:"):
            out.line(f"{before} = w; {count} = 0; section = []")
            for (number, field), name in zip(tagged, sent, strict=True):
                with out.block(f"if {name}:"):
                    self.tag(number, field, f"{var}.{field.name}", count)
            out.line(f"w = {before}; w(uvarint({count})); w(join(section))")
        out.line("else: w(b'\\0')")

    def tag(self, number: int, field: FieldSpec, value: str, count: str) -> None:
        """One tagged field: tag, length, value."""
        assert not _are_records(field.type, self.version), f"{field.name}: records cannot be measured inside a tag"
        outer, inner = self.out.local("section"), self.out.local("inner")
        self.out.line(f"{outer} = section; {inner} = []; w = {inner}.append")
        self.field(field, value)
        self.flush()
        self.out.line(f"{inner} = join({inner}); section = {outer}; {count} += 1")
        self.out.line(f"section += ({runtime.uvarint(number)!r}, uvarint(len({inner})), {inner})")

    def differs(self, field: FieldSpec, value: str) -> str:
        """The condition under which a tagged field is sent."""
        if field.default is list:
            return value
        if field.default == NO_UUID:
            return f"{value}.int"
        if isinstance(field.type, MessageSpec) and not field.array:
            if self.version in field.null:
                return "True"
            return f"({value} is not None and ({self.differs_in_a_field(field.type, value)}))"
        if field.default is None:
            return f"{value} is not None"
        return f"{value} != {field.default!r}"

    def differs_in_a_field(self, spec: MessageSpec, value: str) -> str:
        """The condition under which a struct differs from a new one: every follower's fetch evaluates it."""
        if all(isinstance(field.default, (int, str)) for field in spec.fields):
            return " or ".join(f"{value}.{field.name} != {field.default!r}" for field in spec.fields)
        default = self.out.constant(f"default_{spec.name}", spec.cls(), key=("default", spec.cls))
        return f"{value} != {default}"
