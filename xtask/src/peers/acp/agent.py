# Serves the scenarios of `cargo xtask peers` with the PyPI package agent-client-protocol, which is written by others: an
# ACP agent over standard input and output. PEER_LOG is a file for what it notices, a word a line.
import asyncio
import os

from acp import (
    PROTOCOL_VERSION,
    Agent,
    InitializeResponse,
    NewSessionResponse,
    PromptResponse,
    run_agent,
    start_tool_call,
    text_block,
    update_agent_message,
)
from acp.schema import PermissionOption, ToolCallUpdate


def note(word):
    with open(os.environ["PEER_LOG"], "a") as log:
        log.write(word + "\n")


class Peer(Agent):
    def on_connect(self, conn):
        self.conn = conn
        self.asked = asyncio.Event()

    async def initialize(self, protocol_version, client_capabilities=None, client_info=None, **_):
        return InitializeResponse(protocol_version=PROTOCOL_VERSION)

    async def new_session(self, cwd, mcp_servers=None, **_):
        return NewSessionResponse(session_id="one")

    async def prompt(self, prompt, session_id, **_):
        self.asked.clear()
        word = prompt[0].text.split()[0]
        note("began")
        await self.conn.session_update(session_id, update_agent_message(text_block("I am at it. ")))
        if word == "ask":
            return await self.ask(session_id)
        if word in ("work", "deaf"):
            await self.conn.session_update(session_id, start_tool_call("call1", "Working"))
            note("works")
            await (self.asked.wait() if word == "work" else asyncio.Event().wait())
            note("ended")
            return PromptResponse(stop_reason="cancelled")
        await self.conn.session_update(session_id, update_agent_message(text_block("It is done.")))
        return PromptResponse(stop_reason="end_turn")

    async def ask(self, session_id):
        options = [
            PermissionOption(option_id="y", name="Yes", kind="allow_once"),
            PermissionOption(option_id="n", name="No", kind="reject_once"),
        ]
        call = ToolCallUpdate(tool_call_id="pay", title="Pay the rent", kind="execute", raw_input={"amount": 900})
        note("asks")
        answer = await self.conn.request_permission(session_id=session_id, tool_call=call, options=options)
        note("answered " + (getattr(answer.outcome, "option_id", None) or answer.outcome.outcome))
        if self.asked.is_set():
            return PromptResponse(stop_reason="cancelled")
        said = "Paid." if getattr(answer.outcome, "option_id", None) == "y" else "Not paid."
        await self.conn.session_update(session_id, update_agent_message(text_block(said)))
        return PromptResponse(stop_reason="end_turn")

    async def cancel(self, session_id, **_):
        note("asked")
        self.asked.set()


asyncio.run(run_agent(Peer()))
