"""The page's style is there after its cell was run again, and in no other cell."""

from __future__ import annotations

from jupyter_client.manager import start_new_kernel

from course_lib.base import paths


def run_cell(client, code: str, cell: str) -> list[str]:
    """The HTML that a cell shows, or the words of its error; ``cell`` is its id, as JupyterLab
    sends it."""
    content = {
        "code": code,
        "silent": False,
        "store_history": True,
        "user_expressions": {},
        "allow_stdin": False,
    }
    message = client.session.msg("execute_request", content, metadata={"cellId": cell})
    client.shell_channel.send(message)
    shown = []
    while True:
        reply = client.get_iopub_msg(timeout=120)
        if reply["parent_header"].get("msg_id") != message["header"]["msg_id"]:
            continue
        match reply["msg_type"], reply["content"]:
            case "display_data", content:
                shown.append(content["data"].get("text/html", ""))
            case "error", content:
                shown.append(content["evalue"])
            case "status", {"execution_state": "idle"}:
                return shown


def test_the_style_comes_again_with_its_cell(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(paths.ROOT))
    manager, client = start_new_kernel(kernel_name="python3")
    try:
        imports = "import course_lib\nfrom course_lib.lessons import predict"
        first, again = (run_cell(client, imports, "one") for _ in range(2))
        assert len(first) == 1 and first[0].startswith("<style>") and again == first
        assert run_cell(client, "1 + 1", "two") == run_cell(client, imports, "three") == []
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
