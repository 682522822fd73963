"""Compiles kernels to machine code with numba, if that has not been done on this machine yet."""

import types as python_types
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Final

import llvmlite.binding as llvm
import numba
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from .machine import Array, Bytes, Kernel, Kind

OUTSIDE: Final = ("llvm.",)
"""What the code may call from outside: only what LLVM itself provides."""


BARE: Final = {"_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Without what only Python needs: reference counts, and functions that take Python objects."""


class UnlikeExpected(Exception):
    """This numba makes code with a different calling convention."""


@intrinsic
def copy_bytes(typing_context: object, out: Bytes, to: int, src: Bytes, at: int, length: int) -> tuple[object, object]:
    """``memcpy``: *length* bytes of *src*, from *at* on, to *out*, from *to* on. A loop is eight times as slow."""

    # Numba passes these objects, and says nothing about their types.
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        def address(array: int, index: int) -> object:
            kind, index_kind = signature.args[array], signature.args[index]
            data = context.make_array(kind)(context, builder, arguments[array]).data
            return builder.gep(data, [context.cast(builder, arguments[index], index_kind, types.intp)])

        size = context.cast(builder, arguments[4], signature.args[4], types.intp)
        cgutils.raw_memcpy(builder, address(0, 1), address(2, 3), size, 1)
        return context.get_dummy_value()

    return types.void(out, to, src, at, length), generate


def dispatchers(modules: Iterable[ModuleType]) -> dict[str, Callable[..., int]]:
    """The kernels of these modules, each as a function that numba compiles when it is called."""
    found: dict[str, Callable[..., int]] = {}
    for module in modules:
        compiled = _compiled(module, {"nogil": True})
        found |= {name: compiled[name] for name, value in vars(module).items() if isinstance(value, Kernel)}
    return found


def object_code(modules: Iterable[ModuleType]) -> bytes:
    """All kernels of these modules as one object file, each under its name.

    Raises:
        UnlikeExpected: it could not be called as `machine.py` does.
    """
    merged = llvm.parse_assembly("")
    for module in modules:
        compiled = _compiled(module, BARE)
        for kernel in (value for value in vars(module).values() if isinstance(value, Kernel)):
            _add(merged, kernel, compiled[kernel.name])
    outside = [f.name for f in merged.functions if f.is_declaration and not f.name.startswith(OUTSIDE)]
    if outside:
        raise UnlikeExpected(f"the code needs {', '.join(outside)}")
    merged.verify()
    return bytes(_target_machine().emit_object(merged))


def _compiled(module: ModuleType, options: Mapping[str, object]) -> dict[str, Callable[..., int]]:
    """The functions of a module, with the functions they call replaced by numba's."""
    space: dict[str, object] = {**vars(module), "copy_bytes": copy_bytes}
    made: dict[str, Callable[..., int]] = {}
    for name, value in vars(module).items():
        python = value.python if isinstance(value, Kernel) else value
        if not isinstance(python, python_types.FunctionType) or name == "copy_bytes":
            continue
        code = python_types.FunctionType(python.__code__, space, name, python.__defaults__)
        space[name] = made[name] = njit(error_model="numpy", **options)(code)
    return made


def _add(merged: llvm.ModuleRef, kernel: Kernel, dispatcher: object) -> None:
    """Compile one kernel for the types that it takes, and add its code to the others'."""
    signature = types.int64(*(_numba_type(kind) for kind in kernel.kinds))
    assert isinstance(dispatcher, numba.core.dispatcher.Dispatcher), "nobody has switched the compiler off"
    dispatcher.compile(signature)
    (result,) = dispatcher.overloads.values()
    code = llvm.parse_assembly(result.library.get_llvm_str())
    function = code.get_function(result.fndesc.llvm_func_name)
    _check(kernel, function)
    function.name, function.linkage = kernel.name, llvm.Linkage.external
    merged.link_in(code)


def _numba_type(kind: Kind) -> object:
    return types.int64 if kind is None else types.Array(numba.from_dtype(kind.item), kind.dimensions, "C")


def _check(kernel: Kernel, function: llvm.ValueRef) -> None:
    """
    Raises:
        UnlikeExpected: the parameters are different.
    """
    found = [str(argument.type) for argument in function.arguments]
    expected = ["ptr", "ptr"] + [part for kind in kernel.kinds for part in _parameters(kind)]
    if [_pointer(text) for text in found] != expected:
        raise UnlikeExpected(f"{kernel.name} takes {', '.join(found)}")


def _parameters(kind: Array | None) -> list[str]:
    if kind is None:
        return ["i64"]
    return ["ptr", "ptr", "i64", "i64", "ptr", *["i64"] * (2 * kind.dimensions)]


def _pointer(text: str) -> str:
    return "ptr" if text.endswith("*") else text


def _target_machine() -> llvm.TargetMachine:
    """Code for exactly this processor, which may be loaded anywhere in memory."""
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=host_features(), opt=3, reloc="default", codemodel="jitdefault", jit=True
    )


def host_features() -> str:
    features: Mapping[str, bool] = llvm.get_host_cpu_features()
    return ",".join(("+" if on else "-") + name for name, on in sorted(features.items()))
