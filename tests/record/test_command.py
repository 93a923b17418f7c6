"""The recorded command runs as if nobody watched."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def recorded(words: list[str], cwd: Path, **more: object) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "nnx_migrate", "record", "-o", "sizes.db", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **more.pop("env", {})}  # type: ignore[dict-item]
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, check=False, **more
    )  # type: ignore[call-overload,no-any-return]


def python(code: str) -> list[str]:
    return ["--", sys.executable, "-c", code]


@pytest.mark.parametrize("code", [0, 1, 3, 77])
def test_the_exit_code_is_the_commands(tmp_path: Path, code: int) -> None:
    assert recorded(python(f"import sys; sys.exit({code})"), tmp_path).returncode == code


def test_a_signal_that_ends_the_command_ends_record_alike(tmp_path: Path) -> None:
    done = recorded(python("import os, signal; os.kill(os.getpid(), signal.SIGTERM)"), tmp_path)
    assert done.returncode == -signal.SIGTERM


def test_a_signal_sent_to_record_reaches_the_command(tmp_path: Path) -> None:
    code = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(41))\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n"
    )
    command = [sys.executable, "-m", "nnx_migrate", "record", *python(code)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 41


def test_streams_are_the_commands_own(tmp_path: Path) -> None:
    code = "import sys; sys.stdout.write(sys.stdin.read().upper()); sys.stderr.write('e\\n')"
    done = recorded(python(code), tmp_path, input=b"abc")
    assert done.stdout == b"ABC"
    assert done.stderr.splitlines()[0] == b"e"
    assert done.stderr.splitlines()[1].startswith(b"nnx-migrate: sizes.db: nothing was recorded")


def test_a_terminal_stays_a_terminal(tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "nnx_migrate", "record"]
    command += python("import sys; print(sys.stdin.isatty(), sys.stdout.isatty())")
    with os.fdopen(follower, "wb") as end:
        subprocess.run(
            command,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=end,
            stdout=end,
            stderr=subprocess.DEVNULL,
            check=True,
        )
    assert os.read(leader, 100).split() == [b"True", b"True"]
    os.close(leader)


def test_an_existing_sitecustomize_still_runs_and_sys_path_is_as_before(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import builtins\nbuiltins.customized = 'yes'\n")
    code = "import sys; print(customized, [p for p in sys.path if 'startup' in p])"
    done = recorded(python(code), tmp_path, env={"PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"})
    assert done.stdout == b"yes []\n"


def test_a_shim_runs_before_the_command_in_every_process(tmp_path: Path) -> None:
    (tmp_path / "shim.py").write_text("import builtins\nbuiltins.shimmed = 'yes'\n")
    code = (
        "import subprocess, sys\nprint(shimmed, flush=True)\n"
        "subprocess.run([sys.executable, '-c', 'print(shimmed)'])"
    )
    done = recorded(["--shim", "shim.py", *python(code)], tmp_path)
    assert done.stdout == b"yes\nyes\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--"], "expected -- and a command"),
        ([sys.executable], "unexpected argument"),
        (["--", "no-such-command-anywhere"], "no-such-command-anywhere: No such file"),
        (["--shim", "missing.py", "--", "true"], "--shim missing.py: no such file"),
        (["-o", "missing/sizes.db", "--", "true"], "expected a file in an existing directory"),
        (["--seconds", "soon", "--", "true"], "expected a whole number of seconds"),
    ],
)
def test_what_cannot_run_is_one_line_and_exit_code_2(
    tmp_path: Path, words: list[str], message: str
) -> None:
    done = recorded(words, tmp_path)
    assert done.returncode == 2
    assert message in done.stderr.decode()
    assert len(done.stderr.splitlines()) == 1


def test_a_file_that_is_no_evidence_is_left_alone_and_the_command_not_run(tmp_path: Path) -> None:
    (tmp_path / "sizes.db").write_bytes(b"my notes " * 200)
    done = recorded(python("open('ran', 'w')"), tmp_path)
    assert (done.returncode, (tmp_path / "ran").exists()) == (2, False)
    assert (tmp_path / "sizes.db").read_bytes() == b"my notes " * 200
