"""A third-party A2A agent (the protocol's official SDK): `a2a_server.py <port> <note file>`. It echoes each message. For a message
that starts with `wait` it waits until it is cancelled, and then writes `cancelled` to the file."""

import asyncio
import sys

import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentSkill, Part, TextPart
from starlette.responses import PlainTextResponse

TOKEN = "remote-token-4711"
PORT, NOTE = int(sys.argv[1]), sys.argv[2]


class Echo(AgentExecutor):
    async def execute(self, context, event_queue):
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updater.submit()
        await updater.start_work()
        said = context.get_user_input()
        if said.startswith("wait"):
            await updater.add_artifact([Part(root=TextPart(text="so far"))], artifact_id="a")
            await asyncio.sleep(600)
        answer = f"you said: {said} (key {TOKEN})"
        await updater.add_artifact([Part(root=TextPart(text=answer))], artifact_id="a")
        await updater.complete()

    async def cancel(self, context, event_queue):
        with open(NOTE, "w") as file:
            file.write("cancelled")
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


class Guarded:
    """Accepts only requests with the token."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        shown = dict(scope.get("headers", [])).get(b"authorization", b"").decode()
        if scope["type"] == "http" and shown != f"Bearer {TOKEN}":
            return await PlainTextResponse("no", status_code=401)(scope, receive, send)
        return await self.app(scope, receive, send)


card = AgentCard(
    name="Echo", description="Says back what it is told.", url=f"http://127.0.0.1:{PORT}/", version="1",
    capabilities=AgentCapabilities(streaming=True), default_input_modes=["text/plain"],
    default_output_modes=["text/plain"], skills=[AgentSkill(id="echo", name="Echo", description="Echo", tags=["echo"])],
)
handler = DefaultRequestHandler(agent_executor=Echo(), task_store=InMemoryTaskStore())
app = Guarded(A2AStarletteApplication(agent_card=card, http_handler=handler).build())
uvicorn.run(app, host="127.0.0.1", port=PORT, log_level="warning")
