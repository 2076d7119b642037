"""A third-party ACP client (the protocol's official SDK) of `polyclaw acp`: `acp_client.py <binary> plain` prompts and loads a
session; `acp_client.py <binary> tools` allows a tool call once, rejects it once and cancels a turn."""

import asyncio
import os
import sys

from acp import PROTOCOL_VERSION, Client, RequestError, spawn_agent_process, text_block
from acp.schema import AllowedOutcome, DeniedOutcome, RequestPermissionResponse


class Editor(Client):
    def __init__(self):
        self.updates, self.asked, self.choice = [], [], "allow_once"

    async def request_permission(self, session_id, tool_call, options, **kwargs):
        self.asked.append(tool_call)
        chosen = next((one for one in options if one.kind == self.choice), None)
        outcome = AllowedOutcome(outcome="selected", option_id=chosen.option_id) if chosen else DeniedOutcome(outcome="cancelled")
        return RequestPermissionResponse(outcome=outcome)

    async def session_update(self, session_id, update, **kwargs):
        self.updates.append(update)

    def said(self, kind="agent_message_chunk"):
        return "".join(one.content.text for one in self.updates if one.session_update == kind)

    def calls(self):
        return [one for one in self.updates if one.session_update.startswith("tool_call")]


async def plain(editor, agent):
    started = await agent.initialize(protocol_version=PROTOCOL_VERSION)
    assert started.protocol_version == 1 and started.agent_capabilities.load_session, started
    session = (await agent.new_session(cwd=os.getcwd(), mcp_servers=[])).session_id
    done = await agent.prompt(session_id=session, prompt=[text_block("Say hello.")])
    assert done.stop_reason in ("end_turn", "max_tokens"), done
    answer = editor.said()
    assert answer, editor.updates
    editor.updates.clear()
    await agent.load_session(session_id=session, cwd=os.getcwd(), mcp_servers=[])
    assert editor.said() == answer and "Say hello." in editor.said("user_message_chunk"), editor.updates
    try:
        await agent.load_session(session_id="agent:main:none", cwd=os.getcwd(), mcp_servers=[])
        raise AssertionError("an unknown session was loaded")
    except RequestError as error:
        assert error.code == -32002, error
    print("acp client: initialize, new, prompt, load, errors")


async def tools(editor, agent):
    await agent.initialize(protocol_version=PROTOCOL_VERSION)
    session = (await agent.new_session(cwd=os.getcwd(), mcp_servers=[])).session_id
    await agent.prompt(session_id=session, prompt=[text_block("run it")])
    assert len(editor.asked) == 1 and editor.asked[0].title == "shell", editor.asked
    states = [one.status for one in editor.calls()]
    assert states == ["pending", "in_progress", "completed"], editor.updates
    assert len({one.tool_call_id for one in editor.calls()}) == 1, editor.calls()
    editor.updates.clear()
    editor.choice = "reject_once"
    await agent.prompt(session_id=session, prompt=[text_block("run it")])
    assert len(editor.asked) == 2 and "completed" not in [one.status for one in editor.calls()], editor.updates

    waiting = asyncio.create_task(agent.prompt(session_id=session, prompt=[text_block("wait")]))
    while "thinking" not in editor.said():
        await asyncio.sleep(0.05)
    await agent.cancel(session_id=session)
    done = await asyncio.wait_for(waiting, 20)
    assert done.stop_reason == "cancelled", done
    print("acp client: permission given and refused, cancel")


async def main(binary, verb):
    editor = Editor()
    async with spawn_agent_process(editor, binary, "acp", env=dict(os.environ)) as (agent, _):
        await asyncio.wait_for({"plain": plain, "tools": tools}[verb](editor, agent), 100)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
