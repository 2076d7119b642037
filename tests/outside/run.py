"""Tests Polyclaw with third-party software: the official OpenAI client and clients of A2A and ACP on one side, llama.cpp's server with
a small real model on the other. Only the shape of answers is checked, never the text. Then schemathesis tests the APIs of an instance
and of a control plane, and the Matrix adapter runs on a real homeserver. Needs POLYCLAW_BIN."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

import a2a_client
import control
import golden
import llama
import matrix
import odd
from llama import WEIGHTS, free_port

BINARY = os.environ.get("POLYCLAW_BIN") or sys.exit("run.py: POLYCLAW_BIN is not set")
TOKEN = "outside"
HERE = os.path.dirname(os.path.abspath(__file__))


class Daemon:
    def __init__(self, home, config):
        self.home = home
        os.makedirs(home, exist_ok=True)
        with open(os.path.join(home, "config.toml"), "w") as file:
            file.write(config)
        self.start()

    def start(self):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.env = dict(os.environ, HOME=self.home, POLYCLAW_HOME=self.home, POLYCLAW_TOKEN=TOKEN, POLYCLAW_URL=self.url)
        log = open(os.path.join(self.home, "daemon.log"), "ab")
        command = [BINARY, "daemon", "--port", str(self.port)]
        self.process = subprocess.Popen(command, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        for _ in range(400):
            try:
                urllib.request.urlopen(self.url + "/ready", timeout=1)
                return
            except OSError:
                time.sleep(0.05)
        raise SystemExit("run.py: the daemon is not ready")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def call(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
        request = urllib.request.Request(self.url + path, data=data, headers=headers)
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)


def embedded_model(folder, url):
    """Compares the embedded engine with llama.cpp on the same model file."""
    golden.check(url)
    home = os.path.join(folder, "embedded")
    env = dict(os.environ, HOME=home, POLYCLAW_HOME=home)
    run = lambda *args: subprocess.run([BINARY, "--json", *args], env=env, capture_output=True, text=True, timeout=300)
    pulled = run("model", "pull", "--from", os.path.dirname(WEIGHTS))
    assert pulled.returncode == 0, pulled
    known = json.load(open(golden.SURPRISE))
    ratios = []
    for _ in range(3):
        ours = json.loads(run("model", "bench").stdout)["ok"]
        assert abs(ours["nll"] - known["nll"]) < 0.01 * known["nll"], (ours["nll"], known["nll"])
        theirs = golden.speed(url)
        ratios.append((ours["answer_tokens_per_s"] / theirs["answer"], ours["prompt_tokens_per_s"] / theirs["prompt"]))
        print("embedded model:", {k: round(v, 2) if isinstance(v, float) else v for k, v in ours.items()}, "llama.cpp:", theirs)
    best = max(ratios)
    assert best[0] >= 0.7 or ours["answer_tokens_per_s"] >= 30, ratios
    print(f"embedded model against llama.cpp: answer {best[0]:.2f} x, prompt {best[1]:.2f} x")


def openai_client(daemon):
    from openai import NotFoundError, OpenAI

    client = OpenAI(base_url=daemon.url + "/v1", api_key=TOKEN, max_retries=0)
    models = [model.id for model in client.models.list()]
    assert "polyclaw/main" in models, models

    ask = {"model": "polyclaw/main", "messages": [{"role": "user", "content": "Name three fruits."}]}
    whole = client.chat.completions.create(**ask)
    assert whole.choices[0].message.content and whole.choices[0].finish_reason in ("stop", "length"), whole
    assert whole.usage.prompt_tokens > 0 and whole.usage.completion_tokens > 0, whole.usage

    pieces = list(client.chat.completions.create(**ask, stream=True, stream_options={"include_usage": True}))
    texts = [c.choices[0].delta.content for c in pieces if c.choices and c.choices[0].delta.content]
    assert len(texts) > 2, "the answer did not stream"
    assert pieces[-1].usage.completion_tokens > 0, pieces[-1]

    user = dict(ask, user="alice")
    for text in ["My name is Alice.", "What did I say?"]:
        client.chat.completions.create(**dict(user, messages=[{"role": "user", "content": text}]))
    transcript = daemon.call("/api/v1/sessions/agent%3Amain%3Aopenai%3Adm%3Aalice/transcript")
    assert [m["role"] for m in transcript["messages"]] == ["user", "assistant"] * 2, transcript

    answer = client.responses.create(model="polyclaw/main", input="Say hello.")
    # A small model may reach its token limit. The answer must report that.
    assert answer.output_text and answer.status in ("completed", "incomplete"), answer
    assert (answer.status == "incomplete") == (answer.incomplete_details is not None), answer
    events = list(client.responses.create(model="polyclaw/main", input="Say hello.", stream=True))
    assert events[0].type == "response.created", events
    assert events[-1].type == f"response.{events[-1].response.status}", events
    assert any(event.type == "response.output_text.delta" for event in events)

    try:
        client.chat.completions.create(**dict(ask, model="polyclaw/nobody"))
        raise AssertionError("an unknown agent was accepted")
    except NotFoundError as error:
        assert error.code in ("unknown_agent", "unknown_model", "model_not_found"), error.code
    print("openai client: models, chat, streaming, sessions, responses, errors")


def command_line(daemon):
    answer = subprocess.run(
        [BINARY, "agent", "--message", "Name a colour."], env=daemon.env, capture_output=True, text=True, timeout=120
    )
    assert answer.returncode == 0 and answer.stdout.strip(), answer
    print("polyclaw agent --message:", answer.stdout.strip()[:60].replace("\n", " "))


def agent_protocols(daemon):
    """Runs third-party clients of A2A and ACP against an agent with a real model."""
    asyncio.run(a2a_client.check(daemon.url, TOKEN))
    command = [sys.executable, os.path.join(HERE, "acp_client.py"), BINARY, "plain"]
    subprocess.run(command, env=daemon.env, check=True, timeout=120)


def killed_in_the_middle(daemon):
    """Kills the daemon with SIGKILL during an answer. After the restart there is exactly one answer."""
    key = "agent%3Amain%3Aweb%3Adm%3Akilled"
    body = {"text": "Write a long story about the sea.", "idempotency_key": "k"}
    daemon.call(f"/api/v1/sessions/{key}/messages", body)
    time.sleep(0.4)
    daemon.kill()
    daemon.start()
    again = daemon.call(f"/api/v1/sessions/{key}/messages?wait=120", body)
    assert again["duplicate"] and again["reply"]["text"], again
    transcript = daemon.call(f"/api/v1/sessions/{key}/transcript")
    assert [m["role"] for m in transcript["messages"]] == ["user", "assistant"], transcript
    print("SIGKILL during an answer: one answer")


def main():
    server, url = llama.serve()
    with tempfile.TemporaryDirectory() as folder:
        embedded_model(folder, url)
        provider = f'[providers.llama]\nkind = "openai_compatible"\nbase_url = "{url}/v1"\nmodels = ["smollm2"]\n'
        defaults = '[agents.defaults]\nmodel = "llama/smollm2"\nmax_tokens = 60\n'
        exposed = '[a2a]\nexpose = ["main"]\n'
        daemon = Daemon(os.path.join(folder, "home"), provider + defaults + exposed)
        try:
            command_line(daemon)
            openai_client(daemon)
            agent_protocols(daemon)
            killed_in_the_middle(daemon)
            daemon.kill()
            # These requests need no model. A closed port refuses immediately, which keeps them quick.
            closed = f'[providers.none]\nkind = "openai_compatible"\nbase_url = "http://127.0.0.1:{free_port()}/v1"\n'
            defaults = '[agents.defaults]\nmodel = "none/m"\n'
            daemon = Daemon(os.path.join(folder, "odd"), closed + defaults)
            odd.requests(
                "an instance", daemon.url + "/api/v1/openapi.json", TOKEN, "/(ws|stream|metrics)$", odd.CHECKS,
            )
        finally:
            daemon.kill()
    del server
    control.check(BINARY)
    matrix.check()
    print("outside checks: 8 passed, 0 failed")


main()
# llama.cpp's threads outlive their server, so exit without waiting for them.
os._exit(0)
