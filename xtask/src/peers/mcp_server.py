"""The client of PyPI's mcp against our server, over standard input and output and over HTTP: what it reads is what the session says.

python mcp_server.py SCENARIO VERSION MARK http URL TOKEN
python mcp_server.py SCENARIO VERSION MARK stdio COMMAND...
It ends with 0, or says what is not as it must be. MARK is how long the commands would sleep: a process of it is known by it.
"""
import os
import sys
from contextlib import asynccontextmanager

import anyio
import mcp_types as types
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

PATIENCE = 30


def check(what, found, wanted):
    if found != wanted:
        sys.exit(f"{what}: {found!r}, not {wanted!r}")


def sleepers(mark):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = open(f"/proc/{pid}/cmdline", "rb").read().split(b"\0")
        except OSError:
            continue
        if line[:2] == [b"sleep", mark.encode()]:
            found.append(int(pid))
    return found


async def until(what, holds):
    with anyio.move_on_after(PATIENCE):
        while not holds():
            await anyio.sleep(0.01)
        return
    sys.exit(f"{what}: not within {PATIENCE} s")


def answers(decision):
    async def callback(_context, params):
        check("the form", "decision" in params.requested_schema["properties"], True)
        if decision == "decline":
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content={"decision": decision})

    return callback


@asynccontextmanager
async def connected(version, over, decision=None):
    kind, where, *rest = over
    callback = answers(decision) if decision else None
    if kind == "stdio":
        transport = stdio_client(StdioServerParameters(command=where, args=rest))
        async with Client(transport, mode=version, elicitation_callback=callback) as client:
            yield client
        return
    async with create_mcp_http_client(headers={"authorization": f"Bearer {rest[0]}"}) as http:
        transport = streamable_http_client(where, http_client=http)
        async with Client(transport, mode=version, elicitation_callback=callback) as client:
            yield client


async def call(client, text, session=None, **more):
    arguments = {"text": text} if session is None else {"text": text, "session": session}
    return await client.call_tool("helper", arguments, **more)


def text(result):
    return "".join(part.text for part in result.content)


async def plain(version, _mark, over):
    shown = []

    async def progress(count, _total, message):
        shown.append((count, message))

    async with connected(version, over) as client:
        tools = (await client.list_tools()).tools
        check("the tools", [tool.name for tool in tools], ["helper"])
        first = await call(client, "say: hello", progress_callback=progress)
        check("it failed", first.is_error, False)
        check("it says something", bool(text(first)), True)
        check("the outcome", first.structured_content["outcome"], "completed")
        check("what was shown of it", "".join(message for _, message in shown), text(first))
        check("the counts rise", [count for count, _ in shown], sorted({count for count, _ in shown}))
        session = first.structured_content["session"]
        second = await call(client, "say: again", session)
        check("the session", second.structured_content["session"], session)
        check("the item", second.structured_content["item"], "item-2")
        wrong = await call(client, "say: x", "ses_none")
        check("a foreign session", (wrong.is_error, wrong.structured_content["code"]), (True, "no_such_session"))


async def cancel(version, mark, over):
    async with connected(version, over, "approve") as client:
        async with anyio.create_task_group() as calls:
            calls.start_soon(call, client, f"run: sleep {mark}")
            await until("the command runs", lambda: sleepers(mark))
            calls.cancel_scope.cancel()
        await until("the command has ended", lambda: not sleepers(mark))
        after = await call(client, "say: hello")
        check("the call behind it", after.structured_content["outcome"], "completed")


async def decide(version, mark, over):
    async with connected(version, over, "approve") as client:
        done = await call(client, "run: echo allowed")
        check("the outcome", done.structured_content["outcome"], "completed")
    async with connected(version, over, "decline") as client:
        denied = await call(client, f"run: sleep {mark}")
        check("the outcome of a no", denied.structured_content["outcome"], "completed")
        check("it did not run", sleepers(mark), [])
    async with connected(version, over) as client:
        waits = await call(client, f"run: sleep {mark}")
        account = waits.structured_content
        check("the outcome without an answer", account["outcome"], "suspended")
        how = f"safepoint approve {account['session']} {account['approvals'][0]['id']}"
        check("it says how to decide", how in text(waits), True)


async def vanish(version, mark, over):
    """Ends without a word while its call runs."""
    async with connected(version, over, "approve") as client:
        async with anyio.create_task_group() as calls:
            calls.start_soon(call, client, f"run: sleep {mark}")
            await until("the command runs", lambda: sleepers(mark))
            os._exit(0)


async def leave(version, mark, over):
    await anyio.run_process([sys.executable, __file__, "vanish", version, mark, *over], stderr=None)
    if (over[0], version) == ("http", "legacy"):
        # Its session is there, and may come back: that is no stop. The server's end is.
        check("the command runs on", len(sleepers(mark)), 1)
    else:
        await until("the command has ended", lambda: not sleepers(mark))


async def main(scenario, version, mark, *over):
    scenarios = {"plain": plain, "cancel": cancel, "decide": decide, "leave": leave, "vanish": vanish}
    await scenarios[scenario](version, mark, over)


anyio.run(main, *sys.argv[1:])
