"""A third-party A2A client (the protocol's official SDK) that calls an exposed agent. The text of the model does not matter.
`a2a_client.py check <url> <token>` | `send <url> <token> <messageId> <text>` | `get <url> <token> <id>`"""

import asyncio
import json
import sys
import uuid

import httpx
from a2a.client import A2ACardResolver, A2AClientError, ClientConfig, ClientFactory
from a2a.types import Message, Part, Role, TaskIdParams, TaskQueryParams, TextPart

OVER = ("completed", "failed", "canceled")


def message(text, context=None, name=None):
    parts = [Part(root=TextPart(text=text))]
    return Message(role=Role.user, parts=parts, message_id=name or uuid.uuid4().hex, context_id=context)


def words(task):
    return "".join(part.root.text for artifact in task.artifacts or [] for part in artifact.parts)


class Caller:
    def __init__(self, url, token):
        self.url = url
        self.http = httpx.AsyncClient(headers={"authorization": f"Bearer {token}"}, timeout=120, trust_env=False)

    async def client(self, streaming=False, polling=False):
        self.card = await A2ACardResolver(self.http, self.url).get_agent_card()
        config = ClientConfig(httpx_client=self.http, streaming=streaming, polling=polling)
        return ClientFactory(config).create(self.card)

    async def say(self, sent, streaming=False, polling=False):
        """Returns the last state of the task and the number of updates."""
        client, task, updates = await self.client(streaming, polling), None, 0
        async for task, update in client.send_message(sent):
            updates += update is not None
        return task, updates


async def check(url, token):
    caller = Caller(url, token)
    first = message("Say hello.")
    task, _ = await caller.say(first)
    assert caller.card.protocol_version == "0.3.0" and caller.card.capabilities.streaming, caller.card
    assert caller.card.url.startswith(url) and caller.card.skills, caller.card
    assert task.status.state == "completed" and words(task), task
    assert task.history[0].message_id == first.message_id, task.history

    again, _ = await caller.say(first)
    assert (again.id, again.context_id, words(again)) == (task.id, task.context_id, words(task)), again
    client = await caller.client()
    stored = await client.get_task(TaskQueryParams(id=task.id, history_length=1))
    assert words(stored) == words(task) and len(stored.history) == 1, stored

    streamed, updates = await caller.say(message("And now?", task.context_id), streaming=True)
    assert streamed.context_id == task.context_id and streamed.id != task.id, streamed
    assert streamed.status.state == "completed" and updates >= 2, (streamed, updates)
    assert words(streamed) == words(await client.get_task(TaskQueryParams(id=streamed.id))), streamed

    for refused in (client.get_task(TaskQueryParams(id="none")), client.cancel_task(TaskIdParams(id=task.id))):
        try:
            await refused
            raise AssertionError("a call for an unknown or ended task was accepted")
        except A2AClientError as error:
            assert error.error.code in (-32001, -32002), error
    stranger = httpx.get(url + "/.well-known/agent-card.json", trust_env=False)
    assert stranger.status_code == 401, stranger
    print("a2a client: card, send, repeat, get, stream, errors")


async def send(url, token, name, text):
    task, _ = await Caller(url, token).say(message(text, name=name), polling=True)
    print(task.model_dump_json(by_alias=True, exclude_none=True))


async def get(url, token, name):
    task = await (await Caller(url, token).client()).get_task(TaskQueryParams(id=name))
    print(task.model_dump_json(by_alias=True, exclude_none=True))


async def cancel(url, token, name):
    task = await (await Caller(url, token).client()).cancel_task(TaskIdParams(id=name))
    print(json.dumps(task.status.state))


if __name__ == "__main__":
    verb, *rest = sys.argv[1:]
    asyncio.run({"check": check, "send": send, "get": get, "cancel": cancel}[verb](*rest))
