"""Workers on other machines: a local dask scheduler with worker processes, one of which is killed
in the middle of a check."""

from __future__ import annotations

import functools
import os
import signal
import time

import pytest
from fake_grading import fake_check, grade, read_results, write_class, write_file

from course_lib.base.errors import EnvironmentFault
from course_lib.classroom import workers

distributed = pytest.importorskip(
    "distributed", reason="dask.distributed is not installed; `make dev` installs it"
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    local = tmp_path_factory.mktemp("cluster")
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        local_directory=str(local),
    ) as started:
        yield started


def waits_to_be_killed(request):
    """The first worker that gets it says its number and waits; whoever gets it next checks it."""
    words = request.data.split()
    if words[:1] == [b"WAIT"]:
        try:
            file = os.open(words[1], os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            return fake_check(request)
        os.write(file, str(os.getpid()).encode())
        os.close(file)
        time.sleep(600)
    return fake_check(request)


def test_a_cluster_writes_the_same_bytes_also_when_a_worker_is_killed_in_the_middle(
    cluster, tmp_path
):
    folder = write_class(tmp_path / "class", 6)
    mark = tmp_path / "number"
    write_file(folder / "waits", "01a", f"WAIT {mark} ")
    mark.write_text("0")
    grade(folder, tmp_path / "alone", check=waits_to_be_killed)
    mark.unlink()
    assert workers.count_workers(cluster.scheduler_address) == 2

    def kill(*_):
        if mark.exists() and mark.read_text():
            os.kill(int(mark.read_text()), signal.SIGKILL)
            signal.setitimer(signal.ITIMER_REAL, 0)

    before = signal.signal(signal.SIGALRM, kill)
    signal.setitimer(signal.ITIMER_REAL, 0.5, 0.2)
    try:
        graded = grade(
            folder,
            tmp_path / "cluster",
            check=waits_to_be_killed,
            start=functools.partial(workers.connect, cluster.scheduler_address),
        )
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert int(mark.read_text()) > 1 and graded.checked == 16 and not graded.faults
    assert read_results(tmp_path / "cluster") == read_results(tmp_path / "alone")


def test_no_scheduler_is_said(monkeypatch):
    monkeypatch.setattr(workers, "CONNECT_SECONDS", 0.5)
    with (
        pytest.raises(
            EnvironmentFault, match=r"no dask scheduler answers at tcp://127\.0\.0\.1:9 "
        ),
        workers.connect("tcp://127.0.0.1:9"),
    ):
        pass
