"""From a declaration to the source of a function that decodes one version of it.

The generated code is straight-line: it loops over arrays, and calls only ``struct``, ``str`` and, for rare cases,
``runtime.py``. Adjacent values of fixed size, and the length, count or first varint byte that follows them, are read by
one ``struct`` call.

The rules that make it safe, each implemented in one place below:

- no length is trusted before it is compared with what is left of the buffer;
- no count is trusted before it is compared with what is left, divided by the least size of one element;
- a request has no more entries, in all its arrays and tags together, than ``runtime.ENTRIES_MAX``: an entry of two
  bytes becomes an object of a hundred, and takes as much time as a hundred bytes;
- what ``struct`` or an index cannot read is a ``ProtocolError``; so is null where null is not allowed;
- declarations cannot refer to themselves, so no input can make the code recurse.
"""

from struct import error as struct_error
from struct import unpack_from

from cordwood.errors import ProtocolError

from . import runtime
from .source import Source
from .types import BYTES, RECORDS, STRING, UUID_BYTES, FieldSpec, MessageSpec, Scalar

_CONSTANTS: dict[str, object] = {
    "ProtocolError": ProtocolError,
    "bad_length": runtime.bad_length,
    "beyond": runtime.beyond,
    "make_uuid": runtime.make_uuid,
    "new": object.__new__,
    "pass_tags": runtime.pass_tags,
    "read_tag": runtime.read_tag,
    "read_uvarint": runtime.read_uvarint,
    "short_text": runtime.SHORT_TEXT,
    "struct_error": struct_error,
    "too_many": runtime.too_many,
    "unpack_from": unpack_from,
}


def least_size(kind: Scalar | MessageSpec, version: int, *, flexible: bool) -> int:
    """The fewest bytes that one value can take."""
    if isinstance(kind, MessageSpec):
        fields = sum(_least_field_size(spec, version, flexible=flexible) for spec in kind.plain(version))
        return fields + (1 if flexible else 0)
    if kind.fixed:
        return kind.size
    if flexible:
        return 1
    return 2 if kind is STRING else 4


def _least_field_size(spec: FieldSpec, version: int, *, flexible: bool) -> int:
    if spec.array:
        return 1 if flexible else 4
    if isinstance(spec.type, MessageSpec) and version in spec.null:
        return 1
    return least_size(spec.type, version, flexible=flexible and spec.compact)


def is_counted(spec: MessageSpec) -> bool:
    """Are its entries limited? Those of responses are not: they come from a broker that the user has chosen, and may
    describe whole clusters."""
    return spec.key is not None and spec.name.endswith("Request")


def decoder_source(spec: MessageSpec, version: int) -> Source:
    """The function ``decode(buf, pos) -> (message, pos)`` of one version."""
    writer = _Writer(spec, version)
    out = writer.out
    with out.block("def decode(buf, pos):"):
        out.line("limit = len(buf)")
        if writer.counts:
            out.line(f"room = {runtime.ENTRIES_MAX}")
        with out.block("try:"):
            writer.struct(spec, "m")
            writer.flush()
        with out.block("except (IndexError, struct_error):"):
            out.line(f"raise ProtocolError('{spec.name} v{version}: the bytes end too early') from None")
        with out.block("except UnicodeDecodeError:"):
            out.line(f"raise ProtocolError('{spec.name} v{version}: a string is not UTF-8') from None")
        out.line("return m, pos")
    return out


class _Writer:
    def __init__(self, spec: MessageSpec, version: int) -> None:
        self.out = Source(_CONSTANTS)
        self.version = version
        self.flexible = version in spec.flexible
        self.counts = is_counted(spec)
        # What the next struct call will read: format codes and the names to store to; and the lines to follow it.
        self.run: list[tuple[str, str]] = []
        self.after: list[str] = []

    def flush(self) -> None:
        """Read the values collected in ``run``."""
        run, self.run = self.run, []
        if len(run) == 1 and run[0][0] == "B":
            self.out.line(f"{run[0][1]} = buf[pos]; pos += 1")
        elif run:
            name, size = self.out.packer("".join(code for code, _ in run), "unpack_from")
            targets = ", ".join(target for _, target in run) + ("," if len(run) == 1 else "")
            self.out.line(f"{targets} = {name}(buf, pos); pos += {size}")
        after, self.after = self.after, []
        for line in after:
            self.out.line(line)

    def struct(self, spec: MessageSpec, var: str) -> None:
        """Make an object in *var* and fill all its slots."""
        name = self.out.constant(spec.name, spec.cls, key=spec.cls)
        self.out.line(f"{var} = new({name})")
        tagged = spec.tagged(self.version)
        assert self.flexible or not tagged, f"{spec.name} v{self.version} has tags and is not flexible"
        self.defaults(var, spec.absent(self.version) + [field for _, field in tagged])
        for field in spec.plain(self.version):
            self.field(field, f"{var}.{field.name}")
        if self.flexible:
            self.tags(tagged, var)

    def defaults(self, var: str, fields: list[FieldSpec]) -> None:
        """Give these fields their defaults, with one statement for all that share an immutable one."""
        shared: dict[str, list[str]] = {}
        for field in fields:
            if field.default is list:
                self.out.line(f"{var}.{field.name} = []")
            elif isinstance(field.default, MessageSpec):
                made = self.out.constant(field.default.name, field.default.cls, key=field.default.cls)
                self.out.line(f"{var}.{field.name} = {made}()")
            elif isinstance(field.default, (int, float, str, bytes, type(None))):
                shared.setdefault(repr(field.default), []).append(f"{var}.{field.name}")
            else:
                made = self.out.constant("default", field.default, key=field.default)
                shared.setdefault(made, []).append(f"{var}.{field.name}")
        for value, targets in shared.items():
            self.out.line(" = ".join([*targets, value]))

    def field(self, spec: FieldSpec, target: str) -> None:
        null = self.version in spec.null
        if spec.array:
            self.array(spec, target, null=null)
        elif isinstance(spec.type, MessageSpec):
            self.nested(spec.type, target, null=null, tagged=spec.tag is not None)
        else:
            self.scalar(spec.type, spec.name, target, null=null, compact=self.flexible and spec.compact)

    def scalar(self, kind: Scalar, what: str, target: str, *, null: bool, compact: bool) -> None:
        if kind is UUID_BYTES:
            raw = self.out.local("raw")
            self.run.append(("16s", raw))
            self.after.append(f"{target} = make_uuid({raw})")
        elif kind.fixed:
            self.run.append((kind.code, target))
        elif kind is STRING:
            self.string(what, target, null=null, compact=compact)
        else:
            self.sized(kind, what, target, null=null, compact=compact)

    def string(self, what: str, target: str, *, null: bool, compact: bool) -> None:
        out = self.out
        self.run.append(("B" if compact else "h", "n"))
        self.flush()
        with out.block("if 0 < n < 128:" if compact else "if 0 <= n < 128:"):
            if compact:
                out.line("n -= 1")
            # Unpacking a struct of n bytes checks the bounds itself, and takes half the time of a slice.
            out.line(f"{target} = short_text[n](buf, pos)[0].decode(); pos += n")
        with out.block("elif n > 127:"):
            self.long_string(what, target, null=null, compact=compact)
        self.otherwise_null(what, target, null=null, compact=compact)

    def long_string(self, what: str, target: str, *, null: bool, compact: bool) -> None:
        """A string whose length is not in the first byte alone. The zero of a null may take more bytes than needed."""
        out = self.out
        if compact:
            out.line("n, pos = read_uvarint(buf, pos, n)")
            out.line("n -= 1")
            # No version of any message in Kafka has longer strings.
            out.line(f"if not {-1 if null else 0} <= n <= {runtime.STRING_LENGTH_MAX}: raise bad_length({what!r}, n)")
        out.line(f"if n > limit - pos: raise beyond({what!r}, n, limit - pos)")
        with out.block("if n >= 0:"):
            out.line(f"{target} = str(buf[pos:pos + n], 'utf-8'); pos += n")
        if compact and null:
            out.line(f"else: {target} = None")

    def sized(self, kind: Scalar, what: str, target: str, *, null: bool, compact: bool) -> None:
        """Bytes or records: a length, then that many bytes."""
        self.length(compact=compact)
        with self.out.block("if n:" if compact else "if n >= 0:"):
            self.out.line("end = pos + n - 1" if compact else "end = pos + n")
            self.out.line(f"if end > limit: raise beyond({what!r}, end - pos, limit - pos)")
            read = {BYTES: "bytes(buf[pos:end])", RECORDS: "buf[pos:end]"}[kind]
            self.out.line(f"{target} = {read}; pos = end")
        self.otherwise_null(what, target, null=null, compact=compact)

    def length(self, *, compact: bool) -> None:
        """Read a length or a count into ``n``. In compact form it is sent plus one, so that 0 means null."""
        self.run.append(("B" if compact else "i", "n"))
        self.flush()
        if compact:
            self.out.line("if n > 127: n, pos = read_uvarint(buf, pos, n)")

    def otherwise_null(self, what: str, target: str, *, null: bool, compact: bool) -> None:
        """The branches that follow the one for a valid length: null, if allowed, and errors."""
        if null:
            self.out.line(f"{'else' if compact else 'elif n == -1'}: {target} = None")
        if not (null and compact):
            self.out.line(f"else: raise bad_length({what!r}, {-1 if compact else 'n'})")

    def array(self, spec: FieldSpec, target: str, *, null: bool) -> None:
        out, kind, what = self.out, spec.type, spec.name
        least = least_size(kind, self.version, flexible=self.flexible)
        assert least > 0, f"{what}: an element without bytes would let a count of any size through"
        self.length(compact=self.flexible)
        with out.block("if n:" if self.flexible else "if n >= 0:"):
            if self.flexible:
                out.line("n -= 1")
            claimed = "n" if least == 1 else f"n * {least}"
            out.line(f"if {claimed} > limit - pos: raise beyond({what!r}, n, limit - pos)")
            self.count(what)
            if isinstance(kind, Scalar) and kind.fixed and kind is not UUID_BYTES:
                self.fixed_array(kind, target)
            else:
                self.looped_array(kind, what, target)
        self.otherwise_null(what, target, null=null, compact=self.flexible)

    def count(self, what: str) -> None:
        """Deduct the ``n`` entries that follow from those that a request may have."""
        if self.counts:
            self.out.line("room -= n")
            self.out.line(f"if room < 0: raise too_many({what!r})")

    def fixed_array(self, kind: Scalar, target: str) -> None:
        methods = runtime.short_arrays(kind.code, "unpack_from")
        short = self.out.constant(f"short_{kind.code}".replace("?", "bool"), methods, key=("short", kind.code))
        read = f"{short}[n](buf, pos) if n < {len(methods)} else unpack_from(f'>{{n}}{kind.code}', buf, pos)"
        self.out.line(f"{target} = list({read}); pos += n * {kind.size}")

    def looped_array(self, kind: Scalar | MessageSpec, what: str, target: str) -> None:
        items, item = self.out.local("items"), self.out.local("item")
        self.out.line(f"{target} = {items} = []")
        with self.out.block("for _ in range(n):"):
            if isinstance(kind, MessageSpec):
                self.struct(kind, item)
            else:
                self.scalar(kind, what, item, null=False, compact=self.flexible)
            self.flush()
            self.out.line(f"{items}.append({item})")

    def nested(self, spec: MessageSpec, target: str, *, null: bool, tagged: bool) -> None:
        """A struct in a struct. If it can be null, a byte says whether it is there: 1 if so, else -1 (0 in a tag)."""
        item = self.out.local("item")
        if not null:
            self.struct(spec, item)
            self.out.line(f"{target} = {item}")
            return
        self.run.append(("b", "n"))
        self.flush()
        with self.out.block("if n == 1:"):
            self.struct(spec, item)
            self.flush()
            self.out.line(f"{target} = {item}")
        self.out.line(f"elif n == {0 if tagged else -1}: {target} = None")
        self.out.line(f"else: raise bad_length({spec.name!r}, n)")

    def tags(self, tagged: list[tuple[int, FieldSpec]], var: str) -> None:
        """The tagged fields at the end of a struct: tags must rise, each must be as long as it says, unknown ones are
        skipped."""
        out = self.out
        self.run.append(("B", "n"))
        self.flush()
        if not tagged:
            with out.block("if n:"):
                out.line("if n > 127: n, pos = read_uvarint(buf, pos, n)")
                out.line("if n * 2 > limit - pos: raise beyond('tagged fields', n, limit - pos)")
                self.count("tagged fields")
                out.line("pos = pass_tags(buf, pos, n)")
            return
        tag, end = out.local("tag"), out.local("end")
        with out.block("if n:"):
            out.line("if n > 127: n, pos = read_uvarint(buf, pos, n)")
            out.line("if n * 2 > limit - pos: raise beyond('tagged fields', n, limit - pos)")
            self.count("tagged fields")
            out.line(f"{tag} = -1")
            with out.block("for _ in range(n):"):
                out.line(f"{tag}, {end}, pos = read_tag(buf, pos, {tag})")
                for position, (number, field) in enumerate(tagged):
                    with out.block(f"{'el' if position else ''}if {tag} == {number}:"):
                        self.field(field, f"{var}.{field.name}")
                        self.flush()
                out.line(f"else: pos = {end}")
                out.line(f"if pos != {end}: raise ProtocolError(f'tagged field {{{tag}}} is not as long as it says')")
