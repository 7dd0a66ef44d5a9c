"""`safepoint serve` as a process: a drain under load, judged by what its commands did and by what is left of them.

python server.py SCENARIO BINARY MODEL FOLDER; it ends with 0, or says what is not as it must be.
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

SCENARIO, BINARY, MODEL, FOLDER = sys.argv[1], sys.argv[2], sys.argv[3], pathlib.Path(sys.argv[4])
RUNS, WITHIN = 20, 60


def check(what, found, wanted):
    if found != wanted:
        sys.exit(f"{what}: {found!r}, not {wanted!r}")


def until(what, is_so):
    ends = time.monotonic() + WITHIN
    while not (found := is_so()):
        if time.monotonic() > ends:
            sys.exit(f"within {WITHIN} s it did not happen: {what}")
        time.sleep(0.05)
    return found


class Server:
    """The server, and what is asked of it."""

    def __init__(self):
        home = str(FOLDER)
        self.env = {**os.environ, "OPENAI_API_KEY": "none", "HOME": home, "XDG_RUNTIME_DIR": home, "XDG_DATA_HOME": home}
        (FOLDER / "config.toml").write_text(
            f'[server]\nlisten = "127.0.0.1:0"\ndrain = "2s"\n[agents.helper]\nmodel = "openai:m"\nbase_url = "{MODEL}"\n'
            'tools = "shell"\napprove = "auto"\n'
        )
        (FOLDER / "work").mkdir(exist_ok=True)
        self.tokens = ["--tokens", str(FOLDER / "tokens.toml")]
        made = [BINARY, "token", "new", "--name", "peer", "--scope", "read,talk,approve,stop,admin", *self.tokens]
        self.token = subprocess.run(made, check=True, capture_output=True, text=True, env=self.env).stdout.strip()

    def start(self):
        command = [BINARY, "serve", "--config", str(FOLDER / "config.toml"), "--store", str(FOLDER / "store.db")]
        log = (FOLDER / "log.txt").open("a")
        self.process = subprocess.Popen(
            [*command, *self.tokens], stdout=subprocess.PIPE, stderr=log, text=True, env=self.env, cwd=FOLDER / "work"
        )
        self.url = json.loads(self.process.stdout.readline())["listening"]

    def ask(self, method, path, body=None):
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/v1/{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=WITHIN) as answer:
            return json.loads(answer.read() or b"null")

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(WITHIN)


def ledger(name):
    path = FOLDER / "work" / name
    return path.read_text().split() if path.exists() else []


def alive():
    """Processes of our commands."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words, place = stat.read_bytes().replace(b"\0", b" "), os.readlink(stat.with_name("cwd"))
        except OSError:
            continue
        if b"sleep 600" in words and place == str(FOLDER / "work"):
            found.append(words)
    return found


def drained(server):
    """SIGTERM while twenty commands run, and items wait behind them: no command lives on, each turn says that it was stopped,
    and after it is resumed by the next server what waits is done, and no command that had begun runs again."""
    server.start()
    sessions = []
    for run in range(RUNS):
        sessions.append(server.ask("POST", "sessions", {"agent": "helper", "item": {"text": f"run {run:02}"}})["id"])
        server.ask("POST", f"sessions/{sessions[-1]}/items", {"text": f"behind {run:02}"})
    until("all commands run", lambda: len(ledger("begun")) == RUNS and len(alive()) >= RUNS)
    ended = threading.Thread(target=lambda: codes.append(server.terminate()))
    codes = []
    began = time.monotonic()
    ended.start()
    ended.join()
    took = time.monotonic() - began
    check("its exit code", codes[0] in (0, 143), True)
    check("it ends within its drain", took < 15, True)
    check("no command lives on", alive(), [])
    server.start()
    for run, session in enumerate(sessions):
        outcome = lambda item: server.ask("GET", f"sessions/{session}/items/item-{item}").get("outcome")
        check(f"the first item of {run}", outcome(1), "interrupted")
        check(f"what waits behind {run}", outcome(2), None)
        server.ask("POST", f"sessions/{session}/resume", {})
        for item in (1, 2):
            until(f"item {item} of {run} is done", lambda: outcome(item) == "completed")
    check("each command began once", sorted(ledger("begun")), sorted(f"{run:02}" for run in range(RUNS)))
    check("and none came to its end", ledger("ended"), [])
    check("it ends when nothing runs", server.terminate() in (0, 143), True)


def fuzzed(server):
    """Each route but the drain, by the document that the server gives; a request that the document does not allow too."""
    server.start()
    session = server.ask("POST", "sessions", {"agent": "helper", "item": {"text": "hello"}})["id"]
    until("there is a turn", lambda: server.ask("GET", f"sessions/{session}/items/item-1").get("outcome"))
    # Ids of what there is, so that requests come farther than to a 404.
    (FOLDER / "schemathesis.toml").write_text(
        f'[parameters]\n"path.session" = "{session}"\n"path.item" = "item-1"\n"path.turn" = "turn-1"\n'
    )
    asked = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(FOLDER / "schemathesis.toml"), "run", f"{server.url}/v1/openapi.json", "--url", server.url]
    asked += ["--header", f"Authorization: Bearer {server.token}", "--checks", "not_a_server_error", "--exclude-path", "/v1/drain"]
    asked += ["--exclude-name", "DELETE /v1/sessions/{session}"]
    asked += ["--phases", "coverage,fuzzing", "--max-examples", "10", "--seed", "7", "--rate-limit", "45/s", "--no-color"]
    asked += ["--request-timeout", "1", "--continue-on-failure"]
    done = subprocess.run(asked, capture_output=True, text=True, cwd=FOLDER, env=server.env)
    (FOLDER / "schemathesis.txt").write_text(done.stdout + done.stderr)
    if done.returncode != 0:
        sys.exit(f"it found faults: {FOLDER / 'schemathesis.txt'}")
    asked_of = re.search(r"(\d+) generated, (\d+) passed", done.stdout)
    check("hundreds of requests were made", bool(asked_of) and int(asked_of[1]) > 300, True)
    check("it ends", server.terminate() in (0, 143), True)


server = Server()
try:
    {"drained": drained, "fuzzed": fuzzed}[SCENARIO](server)
finally:
    server.process.kill()
