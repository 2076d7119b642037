"""Runs schemathesis against the API of a control plane that has one instance."""

import json
import os
import signal
import subprocess
import tempfile
import time
import urllib.request

import odd
from llama import free_port


def check(binary):
    with tempfile.TemporaryDirectory() as home:
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        env = dict(os.environ, HOME=home, POLYCLAW_HOME=home, POLYCLAW_NO_PULL="1")
        log = open(os.path.join(home, "control.log"), "ab")
        command = [binary, "control", "serve", "--port", str(port)]
        process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            token = ready(url, home)
            call(url, token, "/instances", {"name": "one", "port": free_port()})
            # Calls that wait for a daemon to start or stop, or for a message, are slow. Other tests cover them.
            odd.requests(
                "the control plane", url + "/api/openapi.json", token,
                "/(metrics|start|stop|restart|archive|download|gateway|pending)(/|$)", odd.CHECKS,
            )
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()


def ready(url, home):
    for _ in range(400):
        try:
            urllib.request.urlopen(url + "/health", timeout=1)
            with open(os.path.join(home, "cp", "token")) as file:
                return file.read().strip()
        except OSError:
            time.sleep(0.05)
    raise SystemExit("run.py: the control plane is not ready")


def call(url, token, path, body):
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    request = urllib.request.Request(url + "/api" + path, data=json.dumps(body).encode(), headers=headers)
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)
