"""The other side of a Python hook: a script in its own process, which imports nothing of clawtrace.

It reads one JSON order from descriptor 0, takes the network away where that says so, calls the hook, and writes one
JSON answer to the descriptor that the order names. What the hook prints goes to standard error.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import inspect
import json
import os
import platform
import struct
import sys
import traceback
from pathlib import Path
from typing import Any

# Numbers of the Linux system call interface: include/uapi/linux/{audit,seccomp,filter}.h and each architecture's table.
_ARCHITECTURES = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198), "riscv64": (0xC00000F3, 198)}
"""By machine: the audit architecture and the number of ``socket``."""
_IO_URING_SETUP = 425
"""The same everywhere; a ring can open sockets without the system call ``socket``."""
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _KILL, _REFUSE = 0x7FFF0000, 0x80000000, 0x00050000 | 1  # EPERM


class AttributeDict(dict[str, Any]):
    """A mapping whose values can also be read as attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def deny_network() -> None:
    """Cut this process and all its children off from the network, for good.

    Raises:
        OSError: the system does not let a process do that.
    """
    machine = platform.machine()
    if sys.platform != "linux" or machine not in _ARCHITECTURES:
        raise OSError(f"disabling the network is not supported on {sys.platform} {machine}")
    architecture, socket_call = _ARCHITECTURES[machine]
    program = _filter(architecture, socket_call)
    buffer = ctypes.create_string_buffer(program, len(program))
    order = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    for option, first, second in ((_PR_SET_NO_NEW_PRIVS, 1, 0), (_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, order)):
        if libc.prctl(option, first, second, 0, 0):
            raise OSError(ctypes.get_errno(), "seccomp is not available")


def _filter(architecture: int, socket_call: int) -> bytes:
    """Return the program: another architecture is killed, opening sockets is refused, all else is let through."""
    instructions = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),
        (_AT_LEAST, 2, 0, 0x40000000),  # x32 numbers its calls from here on
        (_EQUAL, 1, 0, socket_call),
        (_EQUAL, 0, 1, _IO_URING_SETUP),
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("HBBI", *instruction) for instruction in instructions)


def _callable(order: dict[str, Any]) -> Any:
    if order["path"] is not None:
        path = Path(order["path"])
        spec = importlib.util.spec_from_file_location(path.stem, path)
        if spec is None or spec.loader is None:
            raise ImportError(f"{str(path)!r} is not a Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        sys.path.insert(0, str(path.parent))
        spec.loader.exec_module(module)
    else:
        sys.path.insert(0, order["import_from"])
        module = importlib.import_module(order["import_path"])
    found = getattr(module, order["callable_name"], None)
    if not callable(found):
        raise AttributeError(f"the hook has no callable {order['callable_name']!r}")
    return found


def _called(hook: Any, order: dict[str, Any]) -> Any:
    """Call the hook with as many of ``run`` and ``context`` as it takes."""
    given = [_record(order["run"]), _record(order["context"])]
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(hook).parameters.values()
    takes = sum(parameter.kind in kinds for parameter in parameters)
    if any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters):
        takes = 2
    return hook(*given[: min(takes, 2)])


def _record(value: Any) -> Any:
    if isinstance(value, dict):
        return AttributeDict({key: _record(item) for key, item in value.items()})
    return [_record(item) for item in value] if isinstance(value, list) else value


def _verdict(answer: Any) -> dict[str, Any]:
    """Return what a hook answered as one mapping.

    Raises:
        TypeError: it is neither a truth value nor a mapping with ``passed``.
    """
    if isinstance(answer, bool):
        return {"passed": answer, "message": "", "metadata": {}}
    if not isinstance(answer, dict):
        answer = {name: getattr(answer, name) for name in ("passed", "message", "metadata") if hasattr(answer, name)}
    if not isinstance(answer.get("passed"), bool):
        raise TypeError("a hook returns true or false, or a mapping with `passed` (and `message`, `metadata`)")
    return {
        "passed": answer["passed"],
        "message": str(answer.get("message") or ""),
        "metadata": answer.get("metadata") or {},
    }


def main() -> None:
    """Carry out one order."""
    order = json.load(sys.stdin)
    with os.fdopen(order["answer_fd"], "w", encoding="utf-8") as stream:
        os.dup2(2, 1)
        try:
            if order["network"] == "deny" and not order["sandboxed"]:
                deny_network()
            answer = _verdict(_called(_callable(order), order))
            text = json.dumps(answer, default=str)
        except BaseException as error:  # a hook may also call sys.exit
            last = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(last.filename).name}:{last.lineno}"
            text = json.dumps({"raised": f"{type(error).__name__}: {error} ({where})"})
        stream.write(text)


if __name__ == "__main__":
    main()
