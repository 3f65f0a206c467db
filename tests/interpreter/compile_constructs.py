"""Asks Triton's compiler about constructs, in a process that is not interpreted, and without a GPU.

``python compile_constructs.py FILE``: FILE is JSON, a list of [path of the module, kernel,
signature, whether it may abort]; what comes out is a list of what the compiler says against each,
null where it takes the kernel as far as TTGIR.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path


class Taken(Exception):
    """The kernel has come through the frontend and the first passes."""


def main(jobs: str) -> None:
    import triton
    from triton import knobs
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    def stop(*_):
        raise Taken

    def inspect_stages(backend=None, stages=None, *rest, **named):
        if stages is None:  # asked what this adds to the key of Triton's cache
            return "constructs", "constructs"
        stages["llir"] = stop

    knobs.runtime.add_stages_inspection_hook = inspect_stages
    # what Triton puts off until its first kernel (it hashes itself) is done once, before the forks
    work = json.loads(Path(jobs).read_text())
    ask(work[0][:3], ASTSource, GPUTarget("cuda", 90, 32), triton.compile)
    answers = []
    for *job, aborts in work:
        answers.append(
            (ask_in_a_fork if aborts else ask)(
                job, ASTSource, GPUTarget("cuda", 90, 32), triton.compile
            )
        )
    print("\n" + json.dumps(answers))


def ask_in_a_fork(job, source, target, compile) -> str | None:
    """The compiler aborts its process on some kernels that it refuses."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with os.fdopen(writing, "w") as answer:
            json.dump(ask(job, source, target, compile), answer)
            answer.flush()
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        text = answer.read()
    _, status = os.waitpid(child, 0)
    return json.loads(text) if text else f"the compiler aborted (status {status})"


def ask(job, source, target, compile) -> str | None:
    path, kernel, signature = job
    described = importlib.util.spec_from_file_location(Path(path).stem, path)
    assert described is not None and described.loader is not None
    module = importlib.util.module_from_spec(described)
    sys.modules[described.name] = module
    try:
        described.loader.exec_module(module)
        compile(source(getattr(module, kernel), signature, {"K": 4}), target=target)
    except Taken:
        return None
    except Exception as refused:
        texts = [str(refused)]
        while refused.__cause__ is not None:
            refused = refused.__cause__
            texts.append(str(refused))
        return describe_refusal("\n".join(texts)) or type(refused).__name__
    raise AssertionError("the compilation did not stop where it should")


def describe_refusal(text: str) -> str:
    """Return the line of a refusal that has the reason, which the tests keep: the last one."""
    lines = [line for line in text.splitlines() if line.strip()] or [""]
    return lines[-1].strip()[:100]


if __name__ == "__main__":
    main(sys.argv[1])
