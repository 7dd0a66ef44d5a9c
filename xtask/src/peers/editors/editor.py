# An editor for `cargo xtask peers`, made with the PyPI package agent-client-protocol, which is written by others: it drives
# `safepoint acp` over standard input and output. Its arguments: a scenario, and the agent's command. It prints what it saw
# as JSON.
import asyncio
import json
import os
import sys

from acp import PROTOCOL_VERSION, Client, RequestPermissionResponse, spawn_agent_process, text_block
from acp.schema import AllowedOutcome, DeniedOutcome


class Editor(Client):
    def __init__(self, scenario):
        self.scenario = scenario
        self.updates = []
        self.asked = asyncio.Event()
        self.works = asyncio.Event()
        self.answer = asyncio.Event()

    async def request_permission(self, session_id, tool_call, options, **_):
        self.asked.set()
        if self.scenario == "cancel-asking":
            await self.answer.wait()
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        kind = "reject_once" if self.scenario == "reject" else "allow_once"
        chosen = next(option for option in options if option.kind == kind)
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen.option_id))

    async def session_update(self, session_id, update, **_):
        self.updates.append(update)
        if getattr(update, "status", None) == "in_progress":
            self.works.set()


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


async def main(scenario, mark, command):
    editor = Editor(scenario)
    saw = {}
    async with spawn_agent_process(editor, command[0], *command[1:]) as (agent, process):
        hello = await agent.initialize(protocol_version=PROTOCOL_VERSION)
        saw["version"] = hello.protocol_version
        session = (await agent.new_session(cwd=os.getcwd(), mcp_servers=[])).session_id

        def prompt(text):
            return asyncio.ensure_future(agent.prompt(session_id=session, prompt=[text_block(text)]))

        first = prompt(f"run: sleep {mark}" if scenario != "plain" else "hello")
        if scenario == "cancel-asking":
            await editor.asked.wait()
            await agent.cancel(session_id=session)
            editor.answer.set()
        elif scenario == "cancel-working":
            await editor.works.wait()
            await agent.cancel(session_id=session)
        elif scenario == "cancel-at-once":
            # No await between the two: the cancel is written right behind the prompt.
            await asyncio.sleep(0)
            await agent.cancel(session_id=session)
        elif scenario == "quit":
            await editor.works.wait()
        if scenario != "quit":
            answer = await first
            saw["first"] = answer.stop_reason
            saw["meta"] = answer.field_meta
            saw["alive"] = len(sleepers(mark))
            saw["updates"] = [update.session_update for update in editor.updates]
            count = len(editor.updates)
            if scenario != "plain":
                second = await prompt("hello")
                saw["second"] = second.stop_reason
                late = [update for update in editor.updates[count:] if update.session_update.startswith("tool_call")]
                saw["late"] = len(late)
            listed = await agent.list_sessions()
            saw["listed"] = [info.session_id for info in listed.sessions] == [session]
            if scenario == "plain":
                count = len(editor.updates)
                await agent.load_session(cwd=os.getcwd(), session_id=session, mcp_servers=[])
                saw["loaded"] = [update.session_update for update in editor.updates[count:]]
                await agent.close_session(session_id=session)
        else:
            first.cancel()
        process.stdin.close()
        saw["exit"] = await asyncio.wait_for(process.wait(), 20)
    saw["alive_after"] = len(sleepers(mark))
    print(json.dumps(saw))


asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
