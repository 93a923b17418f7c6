"""File cases end to end: two processes, packages of the same name, one line per error."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nnx_migrate.parity.files.case_file import CaseError
from nnx_migrate.parity.files.process import Job, device_flags, run_side, simulate
from nnx_migrate.parity.files.run import FileOptions, run_case_file
from tests.parity.file_case import CASE, LINEN, NNX, write_trees


def run(root: Path, **options: Any) -> Any:
    """Compare ``before`` with ``after`` below ``root``."""
    return run_case_file(
        root / "case.py", root / "before", root / "after", options=FileOptions(**options)
    )


def test_config_enum_partial_and_module_fields_reach_the_same_named_class(tmp_path: Path) -> None:
    write_trees(tmp_path)
    report = run(tmp_path)
    assert (report.ok, report.verdict) == (True, "identical")


def test_another_activation_is_different_and_located(tmp_path: Path) -> None:
    write_trees(tmp_path, after=NNX.replace("nnx.relu(x)", "nnx.gelu(x)"))
    report = run(tmp_path)
    assert (report.ok, report.verdict) == (False, "different")


@pytest.mark.slow
def test_a_git_revision_is_compared_with_the_working_tree(tmp_path: Path) -> None:
    write_trees(tmp_path, case=CASE)
    repository = tmp_path / "before"
    git = ["git", "-C", str(repository), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "linen"]):
        subprocess.run([*git, *words], check=True)
    (repository / "pkg" / "models.py").write_text(NNX)
    report = run_case_file(tmp_path / "case.py", before="HEAD", after=repository)
    assert (report.ok, report.verdict) == (True, "identical")


@pytest.mark.slow
def test_a_case_runs_on_the_mesh_it_asks_for(tmp_path: Path) -> None:
    write_trees(tmp_path, case=CASE + "\nCASE['mesh'] = {'data': 8}\n")
    report = run(tmp_path)
    assert report.ok
    assert "data:8" in str(report.to_json())


@pytest.mark.slow
def test_another_method_is_called_on_both_sides(tmp_path: Path) -> None:
    before, after = (text.replace("def __call__", "def run") for text in (LINEN, NNX))
    write_trees(tmp_path, before=before, after=after, case=CASE + "\nCASE['method'] = 'run'\n")
    report = run(tmp_path)
    assert (report.ok, report.verdict) == (True, "identical")


@pytest.mark.parametrize(
    ("before", "case", "message"),
    [
        (LINEN, CASE.replace("return Mlp", "raise ValueError('no'); return Mlp"),
         r"^before side: linen\(\) raised ValueError: no \(case.py:10\)$"),
        (LINEN, CASE.replace("return Mlp", "return 3; Mlp"),
         r"^before side: linen\(\) returned a int: expected a flax.linen.Module"),
        (LINEN.replace("self.head(x)", "1 / 0", 1), CASE,
         r"^before side: .*ZeroDivisionError.*\(models.py:18\)$"),
        (LINEN, CASE + "\nCASE['mesh'] = {'data': 4}\n",
         r"^before side: mesh data:4 needs 4 devices, 2 are there"),
        (LINEN.replace("    rate:", "    note: Any = None\n    rate:"),
         CASE.replace("rate=0.5", "note=(i for i in ())"),
         r"^before side: field 'note' of pkg.models.Mlp \(a generator\) cannot cross"),
    ],
    ids=["linen-raises", "not-a-module", "model-raises", "mesh-too-large", "generator-field"],
)  # fmt: skip
def test_what_the_before_side_cannot_run_is_one_line(
    tmp_path: Path, before: str, case: str, message: str
) -> None:
    write_trees(tmp_path, before=before, case=case)
    with pytest.raises(CaseError, match=message) as caught:
        run(tmp_path, devices=2)
    assert "\n" not in str(caught.value)


def test_a_class_that_the_after_tree_lacks_is_named_with_the_nearest(tmp_path: Path) -> None:
    write_trees(tmp_path, after=NNX.replace("class Mlp", "class MLP"))
    with pytest.raises(CaseError, match=r"^after side: the after side has no 'Mlp' .*nearest: MLP"):
        run(tmp_path)


def test_a_side_that_does_not_finish_is_ended(tmp_path: Path) -> None:
    case = write_trees(tmp_path, case="import time\ntime.sleep(600)\n")
    with pytest.raises(CaseError, match=r"^before side: not finished after 2 s$"):
        run_side(Job("before", case, (tmp_path / "before",), tmp_path / "job"), timeout=2)


PARENT = """\
import sys
from pathlib import Path
from nnx_migrate.parity.files.process import Job, run_side

root = Path(sys.argv[1])
run_side(Job("before", root / "case.py", (root / "before",), root / "job"))
"""


def test_a_side_ends_when_the_command_that_waits_for_it_is_killed(tmp_path: Path) -> None:
    text = f"import os, time\nopen({str(tmp_path / 'pid')!r}, 'w').write(f'{{os.getpid()}} ')\n"
    write_trees(tmp_path, case=text + "time.sleep(600)\n")
    command = [sys.executable, "-c", PARENT, str(tmp_path)]
    with subprocess.Popen(command) as parent:
        until(lambda: (tmp_path / "pid").is_file() and (tmp_path / "pid").read_text()[-1:] == " ")
        parent.kill()
    worker = int((tmp_path / "pid").read_text())
    until(lambda: not is_running(worker))


def until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    late = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < late
        time.sleep(0.05)


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
        stat = Path(f"/proc/{process}/stat").read_text() if Path("/proc").is_dir() else ") R"
    except (ProcessLookupError, FileNotFoundError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def test_a_side_that_dies_is_told_with_its_last_words(tmp_path: Path) -> None:
    text = "import os, sys\nprint('last words', flush=True)\nos.kill(os.getpid(), 9)\n"
    case = write_trees(tmp_path, case=text)
    with pytest.raises(CaseError, match=r"its process was killed by signal 9: last words$"):
        run_side(Job("before", case, (tmp_path / "before",), tmp_path / "job"))


def test_nothing_is_left_in_the_users_trees(tmp_path: Path) -> None:
    case = write_trees(tmp_path, case="from pkg import config\n")
    before = sorted(os.walk(tmp_path))
    with pytest.raises(CaseError, match=r"expected a function linen\(\)"):
        run_case_file(case, tmp_path / "before", tmp_path / "after")
    assert sorted(os.walk(tmp_path)) == before


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("", "--xla_force_host_platform_device_count=8"),
        ("--a=1 --xla_force_host_platform_device_count=2", "--a=1 --xla_force_host_platform_device_count=8"),
    ],
)  # fmt: skip
def test_the_number_of_simulated_devices_replaces_another(flags: str, expected: str) -> None:
    assert device_flags(flags, 8) == expected


@pytest.mark.parametrize(("environment", "threads"), [({}, "64"), ({"NPROC": "16"}, "16")])
def test_simulated_devices_get_threads_to_wait_in(
    environment: dict[str, str], threads: str
) -> None:
    simulate(environment, 8)
    assert environment["NPROC"] == threads
    assert environment["XLA_FLAGS"] == "--xla_force_host_platform_device_count=8"
