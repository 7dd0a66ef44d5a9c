"""A server that is used, stopped and killed for minutes: nothing that was acknowledged is lost, no command begins twice, its memory
is flat, and nothing of it is alive at the end.

python soak.py BINARY FOLDER MINUTES SESSIONS SEED; it prints what it did, and ends with 0, or says what is not as it must be.
"""
import collections
import http.client
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading
import time

BINARY, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
MINUTES, SESSIONS, SEED = float(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
CLIENTS, WITHIN, WORK = 24, 120, FOLDER / "work"
OVER = ("completed", "interrupted", "withdrawn", "failed", "returned", "unhandled")


class Gone(Exception):
    """The server did not answer: whether it took the request is not known."""


class Server:
    """The server; it is killed while it is asked."""

    def __init__(self):
        home = str(FOLDER)
        self.env = {**os.environ, "OPENAI_API_KEY": "none", "HOME": home, "XDG_RUNTIME_DIR": home, "XDG_DATA_HOME": home}
        WORK.mkdir(parents=True)
        (FOLDER / "config.toml").write_text(
            f'[server]\nlisten = "127.0.0.1:0"\nrunning = 40\nunload = "20s"\n'
            f'[agents.helper]\nmodel = "practice"\ntools = "shell"\napprove = "auto"\n'
        )
        self.tokens, self.kept, self.most, self.kills = ["--tokens", str(FOLDER / "tokens.toml")], [], [], 0
        for at in range(CLIENTS):
            made = [BINARY, "token", "new", "--name", f"c{at}", "--scope", "read,talk,approve,stop", "--see", "all", *self.tokens]
            done = subprocess.run(made, check=True, capture_output=True, text=True, env=self.env)
            self.kept.append(done.stdout.strip())
        self.start()

    def start(self):
        command = [BINARY, "serve", "--config", str(FOLDER / "config.toml"), "--store", str(FOLDER / "store.db"), *self.tokens]
        log = (FOLDER / "log.txt").open("a")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=self.env, cwd=WORK)
        url = json.loads(self.process.stdout.readline())["listening"]
        self.address = url.removeprefix("http://")

    def memory(self):
        """MiB, without what the system maps."""
        lines = pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmRSS:")).split()[1]) / 1024

    def kill(self):
        self.most.append(self.memory())
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.kills += 1
        self.start()


class Client:
    """One thread: its sessions, and what was acknowledged to it."""

    def __init__(self, server, at):
        self.server, self.at, self.random = server, at, random.Random(SEED * 1000 + at)
        self.sessions, self.items, self.counts, self.wrong = [], {}, {"items": 0, "stops": 0, "left": 0, "again": 0, "parked": 0}, []

    def connect(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection(self.server.address, timeout=WITHIN)
        headers = {"Authorization": f"Bearer {self.server.kept[self.at]}", "Content-Type": "application/json", **headers}
        try:
            connection.request(method, f"/v1/{path}", None if body is None else json.dumps(body), headers)
            return connection, connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise Gone from error

    def ask(self, method, path, body=None, **headers):
        connection, answer = self.connect(method, path, body, **headers)
        try:
            return answer.status, json.loads(answer.read() or b"null")
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise Gone from error
        finally:
            connection.close()

    def surely(self, method, path, body=None, **headers):
        """Asks until it is answered: the same request, with the same key."""
        ends = time.monotonic() + WITHIN
        while True:
            try:
                status, answer = self.ask(method, path, body, **headers)
                if status not in (429, 503):
                    return status, answer
            except Gone:
                self.counts["again"] += 1
            if time.monotonic() > ends:
                raise AssertionError(f"{method} {path} was not answered within {WITHIN} s")
            time.sleep(0.2)

    def begin(self, count):
        for number in range(count):
            key = {"Idempotency-Key": f"session-{self.at}-{number}"}
            status, answer = self.surely("POST", "sessions", {"agent": "helper"}, **key)
            assert status in (200, 201), answer
            self.sessions.append(answer["id"])

    def push(self):
        session = self.random.choice(self.sessions)
        mark = f"{self.at}-{self.counts['items']}"
        self.counts["items"] += 1
        key = {"Idempotency-Key": f"item-{mark}"}
        text = f"run: echo {mark} | tee -a ledger; sleep 0.2"
        while True:
            status, answer = self.surely("POST", f"sessions/{session}/items", {"text": text}, **key)
            # Its owners were killed five times before it was at rest.
            if (status, answer.get("code")) != (409, "parked"):
                break
            self.counts["parked"] += 1
            self.surely("POST", f"sessions/{session}/resume", {})
        assert status in (200, 202), (status, answer)
        self.items[mark] = (session, answer["id"])
        return session, answer["id"]

    def leave(self, session):
        """Reads some of the session, and goes away in the midst of it."""
        self.counts["left"] += 1
        try:
            connection, answer = self.connect("GET", f"sessions/{session}/events", Accept="text/event-stream")
            answer.fp.read1(self.random.randrange(1, 4000))
            connection.close()
        except (Gone, OSError, http.client.HTTPException):
            pass

    def stop(self, session, item):
        self.counts["stops"] += 1
        time.sleep(self.random.random() * 0.5)
        what = {"item": item} if self.random.random() < 0.6 else {"turn": None}
        mode = self.random.choice(["now", "any"])
        try:
            status, answer = self.ask("POST", f"sessions/{session}/stop", {"what": what, "mode": mode})
            assert status < 500, answer
        except Gone:
            pass

    def work(self, ends):
        try:
            while time.monotonic() < ends:
                session, item = self.push()
                act = self.random.random()
                if act < 0.3:
                    self.stop(session, item)
                elif act < 0.5:
                    self.leave(session)
                elif act < 0.6:
                    self.surely("POST", f"sessions/{session}/resume", {})
                time.sleep(self.random.random() * 1.5)
        except AssertionError as error:
            self.wrong.append(str(error))

    def is_over(self, session, item):
        """A turn that was cut is over where a later one has begun."""
        if item.get("outcome") == "crashed":
            _, shown = self.surely("GET", f"sessions/{session}")
            return shown["resumable"] != item["turn"] and item["state"] == "rest"
        return item.get("outcome") in OVER

    def settle(self):
        """Each item that was acknowledged has an end; a turn that a kill has cut is resumed."""
        ends = time.monotonic() + WITHIN * 3
        outcomes = {}
        for mark, (session, item) in self.items.items():
            while True:
                status, answer = self.surely("GET", f"sessions/{session}/items/{item}")
                assert status == 200, (mark, session, item, answer)
                if self.is_over(session, answer):
                    outcomes[mark] = (answer["outcome"], mark in (answer.get("answer") or ""))
                    break
                self.surely("POST", f"sessions/{session}/resume", {})
                assert time.monotonic() < ends, f"{item} of {session} has no end: {answer}"
                time.sleep(1)
        return outcomes


def alive():
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(entry / "cwd") == str(WORK) and (entry / "cmdline").read_bytes():
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return found


def together(clients, work):
    threads = [threading.Thread(target=work, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    return threads


def main():
    server, chance = Server(), random.Random(SEED)
    clients = [Client(server, at) for at in range(CLIENTS)]
    for thread in together(clients, lambda client: client.begin(SESSIONS // CLIENTS + 1)):
        thread.join()
    ends = time.monotonic() + MINUTES * 60
    threads = together(clients, lambda client: client.work(ends))
    while (left := ends - time.monotonic()) > 0:
        time.sleep(min(left, chance.uniform(10, 30)))
        if time.monotonic() < ends:
            server.kill()
    for thread in threads:
        thread.join()
    outcomes, wrong = {}, [error for client in clients for error in client.wrong]

    def settle(client):
        try:
            outcomes.update(client.settle())
        except AssertionError as error:
            wrong.append(str(error))

    for thread in together(clients, settle):
        thread.join()
    server.most.append(server.memory())
    server.process.send_signal(signal.SIGTERM)
    server.process.wait(WITHIN)
    ledger = (WORK / "ledger").read_text().split()
    twice = sorted({mark for mark in ledger if ledger.count(mark) > 1})
    written = set(ledger)
    unpaid = [mark for mark, (_, says_so) in outcomes.items() if says_so and mark not in written]
    counts = {name: sum(client.counts[name] for client in clients) for name in clients[0].counts}
    ended = collections.Counter(f"{outcome}, {'its command ended' if says_so else 'no end of its command'}" for outcome, says_so in outcomes.values())
    print(f"seed {SEED}: {len(clients) * len(clients[0].sessions)} sessions, {counts}, {server.kills} kills")
    print(f"items by their end: {dict(ended)}; memory before each kill, MiB: {[round(most) for most in server.most]}")
    wrong += [f"begun twice: {twice}"] * bool(twice) + [f"said to be done, and not in the ledger: {unpaid}"] * bool(unpaid)
    wrong += [f"alive: {left}"] * bool(left := alive())
    half = len(server.most) // 2
    if half and max(server.most[half:]) > 1.25 * max(server.most[:half]) + 16:
        wrong.append("memory grows")
    if len(outcomes) != counts["items"]:
        wrong.append(f"{counts['items'] - len(outcomes)} items are lost")
    sys.exit("\n".join(wrong) if wrong else 0)


main()
