"""`play`: the one file, the command, and the loopback server."""

from __future__ import annotations

import http.client
import json
import math
import re
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import gradwalk
from gradwalk import Value, nn
from gradwalk.cli import main
from gradwalk.operation import Op
from gradwalk.ops import OPS
from gradwalk.show import play
from gradwalk.show.program import program_of
from gradwalk.show.serve import Server

MODULES = sorted((Path(__file__).parents[2] / "src/gradwalk/show/page").glob("*.js"))


def invoked(*arguments: str) -> Any:
    return CliRunner().invoke(main, ["play", *arguments])


def start_in(html: str) -> dict[str, Any]:
    found = re.search(r'<script id="start" type="application/json">(.*?)</script>', html)
    assert found
    return dict(json.loads(found[1]))


# ---------------------------------------------------------------- the file


def test_the_file_needs_nothing_else() -> None:
    """No address, no import, no source attribute is left in the file; its policy allows its own script alone."""
    html = play.page("relu(a*b + d)")
    spaces = {"http://www.w3.org/2000/svg", "http://www.w3.org/1998/Math/MathML"}
    assert set(re.findall(r"https?://[^\s\"'`]+", html)) == spaces
    assert re.search(r"^import |\bsrc=|\bhref=", html, re.MULTILINE) is None
    assert "default-src 'none'; script-src 'sha256-" in html
    assert html.count("<script") == 2


def test_the_scripts_match_the_modules() -> None:
    """Every module in the folder is part of the page or of the widget, and none is left out."""
    modules = {path.stem for path in MODULES}
    bundled = set(re.findall(r"^const module_(\w+) = ", play.script("main", "widget"), re.MULTILINE))
    assert modules == bundled


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_no_module_makes_markup_from_text(path: Path) -> None:
    """No module has a way to turn a string into markup or code."""
    text = path.read_text(encoding="utf-8")
    ways = r"innerHTML|outerHTML\s*=|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|srcdoc"
    assert re.findall(ways, text) == []
    assert path.name == "ops.js" or len(text.splitlines()) <= 500


def test_a_walk_of_fifty_nodes_is_small() -> None:
    """The file for a walk of 50 nodes is under 250 KB."""
    x = [Value(0.1 * i, label=f"x{i}") for i in range(10)]
    total = x[0]
    for k in range(40):
        total = total * x[k % 10] + 1.0 if k % 3 else gradwalk.tanh(total)
    program = program_of(total)
    assert 50 <= len(program["nodes"]) <= 110
    assert len(play.page(total).encode()) < 250_000


@pytest.mark.parametrize(
    "label", ["</script><script>alert(1)</script>", "<!--<script>", "]]>", "\u2028", "\ud800", "&lt;"]
)
def test_no_label_can_end_the_data(label: str) -> None:
    """Whatever a label is, the file has two script elements, and the label comes back as it was."""
    html = play.page(gradwalk.exp(Value(1.0, label=label)))
    assert html.count("<script") == 2
    assert html.count("</script") == 2
    assert "<!--" not in html
    assert start_in(html)["program"]["nodes"][0]["label"] == label


def test_numbers_without_a_place_in_json() -> None:
    """inf and nan travel as strings."""
    with gradwalk.ieee():
        root = Value(math.inf) * Value(math.nan)
    nodes = start_in(play.page(root))["program"]["nodes"]
    assert [node["data"] for node in nodes[:2]] == ["inf", "nan"]


def test_a_program_has_operations_labels_and_scopes() -> None:
    """Operations go by their row's name, with parameters; scopes by their path."""
    x = Value(2.0, label="x")
    with gradwalk.scope("outer"), gradwalk.scope("inner"):
        root = gradwalk.leaky_relu(x**2, 0.2)
    assert program_of(root) == {
        "nodes": [
            {"data": 2.0, "label": "x"},
            {"scope": 0, "op": "pow_number", "children": [0], "parameters": [2.0]},
            {"scope": 0, "op": "leaky_relu", "children": [1], "parameters": [0.2]},
        ],
        "root": 2,
        "scopes": ["outer/inner"],
    }


def test_of_a_large_graph_the_part_nearest_the_result_is_handed_on() -> None:
    """Where it is cut there are leaves, marked so; what is used below the cut, too, has a part of its gradient."""
    x = Value(2.0, label="x")
    y = x + x
    z = y * y
    assert program_of(z - x, most=2) == {
        "nodes": [
            {"cut": True, "data": 4.0},
            {"op": "mul", "children": [0, 0]},
            {"label": "x", "partial": True, "data": 2.0},
            {"op": "sub", "children": [1, 2]},
        ],
        "root": 3,
        "scopes": [],
        "total": 4,
    }


def test_what_a_browser_may_compute_otherwise_is_handed_on() -> None:
    """Numbers that come of exp or pow are the engine's; sums, products, roots and squares are the same everywhere."""
    x = Value(2.0)
    assert program_of(gradwalk.exp(x))["nodes"][1] == {
        "op": "exp", "children": [0], "local_grads": [math.exp(2.0)], "data": math.exp(2.0)
    }  # fmt: skip
    handed_on = [row.name for row in OPS.values() if "data" in of_row(row)]
    assert {"exp", "erf", "gelu", "lgamma", "pow", "sin", "tanh"} <= set(handed_on)
    assert not {"add", "div", "fmod", "hypot", "relu", "sqrt", "where"} & set(handed_on)
    assert "data" in program_of(x**3)["nodes"][1]
    assert "data" not in program_of(x**2)["nodes"][1]


def of_row(row: Op) -> dict[str, Any]:
    numbers = row.samples[-1] if isinstance(row.samples[-1], tuple) else (row.samples[-1],)
    inputs = list(map(Value, numbers[: len(row.inputs)]))
    return program_of(inputs[0]._apply(row.name, *inputs, *numbers[len(row.inputs) :]))["nodes"][-1]


def test_numbers_follow_from_the_leaves_as_they_are() -> None:
    """After a leaf was set, none is handed on that was computed before."""
    x = Value(2.0)
    root = gradwalk.exp(x * x)
    x.data = 1.5
    assert program_of(root)["nodes"][-1]["data"] == math.exp(2.25) != root.data


def test_play_refuses_what_is_no_value() -> None:
    """A list, say, is refused by name."""
    with pytest.raises(TypeError, match="play: expected a Value or an expression, got list"):
        play.page([1.0])


def test_play_refuses_what_is_no_expression() -> None:
    """Here, where one can see it, and not in the page that was written."""
    with pytest.raises(ValueError, match="this \\( is never closed"):
        play.page("relu(a")


def test_writing_does_not_touch_gradients() -> None:
    """Handing a program to the page leaves every gradient as it was, also of nodes written by hand."""
    a = Value(3.0)
    square = Value(9.0, (a,), "sq")

    def backward() -> None:
        a.grad += 6.0 * square.grad

    square._backward = backward
    a.grad, square.grad = 0.25, 0.5
    assert program_of(square)["nodes"][1]["local_grads"] == [6.0]
    assert (a.grad, square.grad) == (0.25, 0.5)


def test_a_custom_op_has_its_local_gradients() -> None:
    """The page does not know how to compute it."""
    area = gradwalk.custom_op(lambda x, y: x * y, lambda x, y, out: (y, x), name="area")
    root = area(Value(2.0), Value(3.0))
    assert program_of(root)["nodes"][2] == {
        "spelled": root._op, "children": [0, 1], "local_grads": [3.0, 2.0], "data": 6.0
    }  # fmt: skip


def test_a_real_model_is_written_quickly() -> None:
    """The loss of a model with ten thousand nodes becomes a file with all of them, some fifty bytes each."""
    model = nn.MLP(20, [40, 40, 1])
    loss = model([0.1] * 20)
    html = play.page(loss[0] if isinstance(loss, list) else loss)
    assert len(html.encode()) < 700_000


# ---------------------------------------------------------------- showing


def test_play_keeps_the_file(tmp_path: Path) -> None:
    """With html= the file is written there, and nothing is opened."""
    path = tmp_path / "walk.html"
    assert gradwalk.show.play.play("a*b", html=path, a=2.0) == path
    assert start_in(path.read_text(encoding="utf-8")) == {"text": "a*b", "values": {"a": 2.0}}


def test_play_opens_a_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside a notebook the file is written to the temporary folder and opened."""
    seen: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda address: not seen.append(address))
    path = play.play(Value(2.0) * 3.0)
    assert [path.as_uri()] == seen
    path.unlink()


def test_play_in_a_notebook_is_a_widget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a Value or an expression; where the widget's library is missing, that is what to install."""
    monkeypatch.setattr(play, "in_notebook", lambda: True)
    root = Value(2.0) * 3.0
    assert play.play(root).value is root
    assert play.play("a*b", a=2.0, b=5.0).value.data == 10.0
    monkeypatch.delitem(sys.modules, "gradwalk.show.widget")
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(ImportError, match=r"a notebook needs anywidget .* pip install 'gradwalk\[notebook\]'"):
        play.play(root)


# ---------------------------------------------------------------- the command


def test_the_command_writes_a_file(tmp_path: Path) -> None:
    """`gradwalk play EXPR NAME=NUMBER --html FILE` writes the page and says where."""
    path = tmp_path / "page.html"
    result = invoked("relu(a*b + d)", "a=2", "b=-3", "--html", str(path))
    assert (result.exit_code, result.output.strip()) == (0, str(path))
    assert start_in(path.read_text(encoding="utf-8"))["values"] == {"a": 2.0, "b": -3.0}


def test_without_an_expression_it_opens_an_example(tmp_path: Path) -> None:
    """`gradwalk play` alone is fine."""
    path = tmp_path / "page.html"
    assert invoked("--html", str(path)).exit_code == 0
    assert start_in(path.read_text(encoding="utf-8")) == {}


def test_without_a_browser_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is there all the same."""
    monkeypatch.setattr("webbrowser.open", lambda address: False)
    result = invoked("a*b")
    path = Path(result.output.splitlines()[0])
    assert result.exit_code == 0
    assert "no browser was found here; open the file above, or use --serve" in result.output
    assert start_in(path.read_text(encoding="utf-8"))["text"] == "a*b"
    path.unlink()


def test_an_expression_may_start_with_a_minus(tmp_path: Path) -> None:
    """-a*b is an expression, not an option."""
    path = tmp_path / "page.html"
    assert invoked("-a*b", "--html", str(path)).exit_code == 0
    assert start_in(path.read_text(encoding="utf-8"))["text"] == "-a*b"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["relu(a"], "this ( is never closed"),
        (["__import__(os)"], "there is no operation __import__"),
        (["a*b", "a"], "expected NAME=NUMBER, got 'a'"),
        (["a*b", "a=nan"], "expected NAME=NUMBER"),
        (["a*b", "q=1"], "q is no input of the expression; its inputs are a, b"),
        (["a*b", "--html", "/no/such/folder/x.html"], "cannot write"),
    ],
)
def test_mistakes_are_told_in_a_line(arguments: list[str], said: str) -> None:
    """A user's mistake is said on stderr with status 2, without a traceback."""
    result = invoked(*arguments)
    assert result.exit_code == 2
    assert said in result.output
    assert "Traceback" not in result.output


# ---------------------------------------------------------------- serving


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(play.page("a*b")) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def asked(server: Server, host: str | None, path: str = "/", method: str = "GET") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=5)
    connection.putrequest(method, path, skip_host=True)
    if host is not None:
        connection.putheader("Host", host)
    connection.endheaders()
    answer = connection.getresponse()
    found = (answer.status, answer.read())
    connection.close()
    return found


@pytest.mark.parametrize("asks", [b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n", b"GET / HT", b""], ids=repr)
def test_a_browser_that_closes_too_soon(capfd: pytest.CaptureFixture[str], asks: bytes) -> None:
    """Whenever it does, that is nobody's business."""
    with Server("a page" * 10**7) as running:
        running.daemon_threads = False  # waited for at the end
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        with socket.create_connection(running.server_address) as browser:
            browser.sendall(asks)
            if asks.endswith(b"\n"):
                browser.recv(10)
            browser.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
        running.shutdown()
        thread.join()
    assert capfd.readouterr().err == ""


def test_a_mistake_of_the_server_is_shown(server: Server, capfd: pytest.CaptureFixture[str]) -> None:
    """What is not the browser's doing."""
    try:
        raise ValueError("ours")
    except ValueError:
        server.handle_error(None, ("127.0.0.1", 1))
    assert "ValueError: ours" in capfd.readouterr().err


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.0.0.1:8000", "localhost:1", "[::1]:99"])
def test_it_answers_to_its_own_name(server: Server, host: str) -> None:
    """A request for this machine gets the page."""
    status, content = asked(server, host)
    assert (status, content) == (200, server.content)


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.nip.io", "", None, "LOCALHOST@evil"],
)
def test_it_answers_to_no_other_name(server: Server, host: str | None) -> None:
    """A page elsewhere whose name was pointed at this machine gets nothing: Host is checked."""
    status, content = asked(server, host)
    assert status == 403
    assert b"<html" not in content


def test_what_it_says_beside_the_page(server: Server) -> None:
    """Its length and kind; that nobody keeps it, or reads it from elsewhere; and not which Python it is."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=5)
    connection.request("GET", "/")
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    headers = {name: value for name, value in answer.getheaders() if name != "Date"}
    assert headers.pop("Server").strip() == "gradwalk"
    assert headers == {
        "Content-Type": "text/html; charset=utf-8", "Content-Length": str(len(content)), "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin",
    }  # fmt: skip


def test_two_names_are_none(server: Server) -> None:
    """Who asks by two names could be let in by one and be meant by the other."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=5)
    connection.putrequest("GET", "/", skip_host=True)
    for name in ("localhost", "evil.example"):
        connection.putheader("Host", name)
    connection.endheaders()
    assert connection.getresponse().status == 403
    connection.close()


def test_there_is_one_page(server: Server) -> None:
    """No path leads to a file, and nothing but reading is allowed."""
    assert asked(server, "localhost", "/?t=3") == (200, server.content)
    assert asked(server, "localhost", "/page.html")[1] == b"there is one page, at /\n"
    assert asked(server, "localhost", "/../../etc/passwd")[0] == 404
    assert asked(server, "localhost", "/page.html")[0] == 404
    assert asked(server, "localhost", "/", "POST")[0] == 501
    assert asked(server, "localhost", "/", "HEAD") == (200, b"")


def test_only_the_loopback_address_is_bound(server: Server) -> None:
    """The server listens on 127.0.0.1, and this machine's other addresses refuse."""
    assert server.server_address[0] == "127.0.0.1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing; the system picks the address it would use
        own = probe.getsockname()[0]
    if not own.startswith("127."):
        with pytest.raises(OSError, match="refused"):
            socket.create_connection((own, server.server_address[1]), timeout=2)


def test_serve_prints_its_address() -> None:
    """`gradwalk play --serve` says where it is, answers there, and ends on an interrupt."""
    command = [sys.executable, "-u", "-m", "gradwalk", "play", "a*b", "--serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        port = int(re.findall(r"http://127\.0\.0\.1:(\d+)/", line)[0])
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        connection.request("GET", "/")
        assert connection.getresponse().status == 200
        connection.close()
        process.send_signal(2)
        deadline = time.monotonic() + 10
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        assert process.poll() == 0
