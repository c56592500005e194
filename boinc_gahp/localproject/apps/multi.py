"""Supplied app: ``in0`` and ``in1`` to ``out0``, ``out1`` and sometimes ``out2``.

out0 holds both inputs, out1 their sizes and the command line. out2 is only written if the first
line of in0 begins with OPT, or with ``--optional``. ``--fail N`` exits with status N. The app
``optmid`` is the same program with one input, ``in``, and out1 in the place of out2.
"""

import sys


def read(name: str) -> bytes:
    """Return a file's contents, without pathlib, whose import takes longer than all the rest."""
    with open(name, "rb") as file:  # noqa: PTH123
        return file.read()


def write(name: str, contents: bytes) -> None:
    """Write a file."""
    with open(name, "wb") as file:  # noqa: PTH123
        file.write(contents)


def main() -> int:
    """Run the command line; return the exit status."""
    arguments = sys.argv[1:]
    middle = "--middle-is-optional" in arguments
    sys.stderr.write(f"starting {'optmid' if middle else 'multi'} args: {' '.join(arguments)}\n")
    if "--fail" in arguments:
        return int(arguments[arguments.index("--fail") + 1])
    names = ["in"] if middle else ["in0", "in1"]
    inputs = [read(name) for name in names]
    wanted = inputs[0].startswith(b"OPT") or "--optional" in arguments
    sizes = " ".join(str(len(data)) for data in inputs)
    said = " ".join(word for word in arguments if word != "--middle-is-optional")
    write("out0", b"".join(inputs))
    optional, required = ("out1", "out2") if middle else ("out2", "out1")
    write(required, f"sizes {sizes}\nargs {said}\n".encode())
    if wanted:
        write(optional, b"optional output\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
