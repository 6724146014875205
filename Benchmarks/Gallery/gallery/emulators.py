"""Erlang's emulator, as a tool runs it: the CPU and the memory of the tool depend on it."""

import os
import pathlib

from . import host
from .processes import tree


def options(program, words, variables):
    """The emulator's options, from its command line and environment; other programs have none.

    `erl` passes an option that begins with "+" on with "-", before the first "--". Of a script the first word is the
    script, and the program is the emulator all the same.
    """
    if not pathlib.PurePath(program).name.startswith("beam"):
        return None
    own = words[1 : words.index("--")] if "--" in words else words[1:]
    ports = [f"{name}={variables[name]}" for name in ("ERL_MAX_PORTS",) if name in variables]
    return " ".join([*(f"+{word[1:]}" if word.startswith("-") else word for word in own), *ports])


def release(words):
    """Of Erlang/OTP, and whether its code is compiled to that of the machine."""
    root = pathlib.Path(words[words.index("-root") + 1]) if "-root" in words[:-1] else pathlib.Path("/none")
    try:
        number = (root / "releases/start_erl.data").read_text().split()[1]
        version = (root / f"releases/{number}/OTP_VERSION").read_text().strip()
    except (OSError, IndexError):
        return "OTP unknown"
    code = "io:put_chars(atom_to_list(erlang:system_info(emu_flavor))), halt()."
    flavour = host.output(root / "bin/erl", "-noinput", "-eval", code)
    return f"OTP {version}" + (f", {flavour}" if flavour else "")


def emulator(pid):
    """Of a running process and its descendants: "OTP 25.2.3, jit: +K true"; None without one."""
    for each in tree(pid):
        try:
            program = os.readlink(f"/proc/{each}/exe")
            words, variables = (
                pathlib.Path(f"/proc/{each}/{name}").read_text(errors="replace").rstrip("\0").split("\0")
                for name in ("cmdline", "environ")
            )
        except OSError:
            continue
        found = options(program, words, dict(line.split("=", 1) for line in variables if "=" in line))
        if found is not None:
            return f"{release(words)}: {found}" if found else release(words)
    return None
