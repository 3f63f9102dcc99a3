"""`python3 -m tests`: sets everything up in a clean clone, then runs all checks and tests.

python3 -m tests                      everything
python3 -m tests --only lint,types    some of: lint, types, imports, tests
python3 -m tests --fix                repair what can be repaired (format, lint), then check
python3 -m tests --python 3.12        with another interpreter (an environment of its own); "all" for each there is
python -m tests --here                in the virtual environment that is active, instead of .venv
python3 -m tests -- -k queue -x       what follows goes to pytest
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from jupyter_paddle_gpu.admin import environment
from jupyter_paddle_gpu.admin.environment import SetUpError
from tests import compiler

ROOT = Path(__file__).resolve().parents[1]
SUPPORTED = ("3.10", "3.11", "3.12", "3.13")
WHERE = {"jlpm": ROOT / "labextension"}  # the other commands: in ROOT
CHECKS = {
    "lint": (["ruff", "check", "."], ["ruff", "format", "--check", "."], ["jlpm", "lint"]),
    "types": (["mypy"], ["jlpm", "types"]),
    "imports": (["lint-imports", "--no-cache"],),
    "sidebar": (["jlpm", "test"],),
    "tests": (["pytest"],),
}
FIXES = (["ruff", "check", "--fix", "--quiet", "."], ["ruff", "format", "--quiet", "."], ["jlpm", "fix"])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 -m tests", description="Set up this clone, check it and test it.")
    parser.add_argument("--only", default=",".join(CHECKS), help=f"some of {', '.join(CHECKS)} (default: all)")
    parser.add_argument("--fix", action="store_true", help="repair format and lint first")
    parser.add_argument("--python", metavar="VERSION", help="another interpreter, such as 3.12, or all")
    parser.add_argument("--here", action="store_true", help="use the active virtual environment instead of .venv")
    parser.add_argument("--paddle", metavar="VERSION", help="another Paddle, such as 2.6")
    parser.add_argument("pytest_arguments", nargs="*", metavar="-- …", help="arguments for pytest")
    args = parser.parse_args()
    names = args.only.split(",")
    if unknown := [name for name in names if name not in CHECKS]:
        parser.error(f"there is no check {', '.join(unknown)}; choose from {', '.join(CHECKS)}")
    if args.python or (args.paddle and not in_own_environment()):
        return run_with_others(args.python, args.paddle)
    if args.here and sys.prefix == sys.base_prefix and "CONDA_PREFIX" not in os.environ:
        parser.error("--here needs an active virtual environment: this is the system's Python")
    own = Path(sys.prefix) if args.here or in_own_environment() else ROOT / ".venv"
    try:
        python = environment.ensure(ROOT, own, pins_of(args.paddle))
    except SetUpError as error:
        print(error, file=sys.stderr)
        return 2
    if "tests" in names:
        compiler.ensure(python)
    if args.fix:
        for command in FIXES:
            run_one(python, command)
    return run_checks(python, names, args.pytest_arguments)


def in_own_environment() -> bool:
    """Whether this interpreter is that of one of this clone's environments (.venv, .venv-3.12)."""
    return Path(sys.prefix).parent == ROOT and Path(sys.prefix).name.startswith(".venv")


def run_checks(python: Path, names: list[str], pytest_arguments: list[str]) -> int:
    """Run each check whatever the others say; return 0 when all are green."""
    results = []
    for name in names:
        for command in CHECKS[name]:
            whole = [*command, *(pytest_arguments if name == "tests" else [])]
            print(f"\n── {' '.join(whole)}", flush=True)
            started_s = time.monotonic()
            code = run_one(python, whole)
            results.append((" ".join(command), code, time.monotonic() - started_s))
    print("\n── summary")
    for command_text, code, seconds in results:
        print(f"{'ok    ' if code == 0 else 'FAILED'}  {command_text:28} {seconds:6.1f} s")
    return int(any(code for _, code, _ in results))


def run_one(python: Path, command: list[str]) -> int:
    """Run one program of the environment of ``python``, where it belongs, and return its exit code."""
    env = {**os.environ, "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}
    whole = [str(python.parent / command[0]), *command[1:]]
    return subprocess.run(whole, cwd=WHERE.get(command[0], ROOT), env=env, check=False).returncode


def pins_of(paddle: str | None) -> tuple[str, ...]:
    """Return the requirements that bring this Paddle, with a NumPy that it was built for."""
    if paddle is None:
        return ()
    return (f"paddlepaddle=={paddle}.*", *(("numpy<2", "setuptools") if paddle.startswith("2.") else ()))


def run_with_others(python: str | None, paddle: str | None) -> int:
    """Run the tests (the other checks do not depend on it) under other interpreters, in environments of their own.

    Paddle 2 has no builds for Python 3.13; without a Python named, the newest one that there is for Paddle is taken.
    """
    versions = SUPPORTED if python == "all" else (python,) if python else ("3.12", "3.11", "3.10")
    found = {name: path for name in versions if (path := find_interpreter(name))}
    if python is None:
        found = dict(list(found.items())[:1])
    for name in versions if python else ():
        if name not in found:
            print(f"Python {name} is not on this machine: not tested.", file=sys.stderr)
    if not found:
        return 2
    codes = []
    for name, path in found.items():
        target = ROOT / (f".venv-{name}" + (f"-paddle-{paddle}" if paddle else ""))
        print(f"\n══ Python {name}" + (f", Paddle {paddle}" if paddle else ""), flush=True)
        if not (target / "bin" / "pip").exists() and subprocess.run([path, "-m", "venv", "--clear", target]).returncode:
            codes.append(2)  # it has said why
            continue
        command = [str(target / "bin" / "python"), "-m", "tests", "--only", "tests"]
        command += ["--paddle", paddle] if paddle else []
        codes.append(subprocess.run([*command, *pytest_tail()], cwd=ROOT).returncode)
    return int(any(codes))


def pytest_tail() -> list[str]:
    """Return ``--`` and what follows it on our own command line."""
    return sys.argv[sys.argv.index("--") :] if "--" in sys.argv else []


def find_interpreter(version: str) -> str | None:
    """Return an interpreter of this version: on the PATH, or among pyenv's; None where there is none that runs."""
    candidates = [shutil.which(f"python{version}")]
    candidates += [str(path) for path in Path.home().glob(f".pyenv/versions/{version}.*/bin/python")]
    for candidate in candidates:
        if candidate and _version_of(candidate) == version:
            return candidate
    return None


def _version_of(interpreter: str) -> str:
    """Return its version as 3.12; empty where it does not run, as a shim without an interpreter behind it."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    return subprocess.run([interpreter, "-c", code], capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
