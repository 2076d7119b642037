"""Tests the Matrix adapter on a real homeserver: Synapse with SQLite on loopback, with two users and several rooms. The example
`echo` of the adapter's crate echoes each message."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

from llama import HERE, free_port

ROOT = os.path.join(HERE, "..", "..")
CONFIG = """
server_name: hs
pid_file: {folder}/pid
signing_key_path: {folder}/signing.key
media_store_path: {folder}/media
log_config: {folder}/log.yaml
report_stats: false
macaroon_secret_key: m
form_secret: f
registration_shared_secret: r
enable_registration: true
enable_registration_without_verification: true
trusted_key_servers: []
presence: {{enabled: false}}
listeners:
  - {{port: {port}, bind_addresses: ["127.0.0.1"], type: http, tls: false, resources: [{{names: [client]}}]}}
database: {{name: sqlite3, args: {{database: "{folder}/db"}}}}
# Low enough to trigger rate limiting, high enough for a quick test.
rc_message: {{per_second: 40, burst_count: 20}}
rc_registration: {{per_second: 1000, burst_count: 1000}}
rc_login: {{address: &many {{per_second: 1000, burst_count: 1000}}, account: *many}}
rc_invites: {{per_user: *many, per_room: *many, per_issuer: *many}}
"""
LOG = "{version: 1, handlers: {file: {class: logging.FileHandler, filename: %s}}, root: {level: WARNING, handlers: [file]}}"


class Homeserver:
    def __init__(self, folder):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        config = os.path.join(folder, "homeserver.yaml")
        with open(config, "w") as file:
            file.write(CONFIG.format(folder=folder, port=self.port))
        with open(os.path.join(folder, "log.yaml"), "w") as file:
            file.write(LOG % os.path.join(folder, "log"))
        command = [sys.executable, "-m", "synapse.app.homeserver", "-c", config]
        subprocess.run([*command, "--generate-keys"], check=True, cwd=folder, stdout=subprocess.DEVNULL)
        self.process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(300):
            try:
                urllib.request.urlopen(self.url + "/_matrix/client/versions", timeout=1)
                return
            except OSError:
                time.sleep(0.1)
        raise SystemExit("matrix.py: the homeserver did not start")

    def stop(self):
        self.process.kill()
        self.process.wait()


class Person:
    def __init__(self, homeserver, name):
        self.homeserver, self.token, self.count = homeserver, None, 0
        body = {"username": name, "password": f"pw-{name}", "auth": {"type": "m.login.dummy"}}
        made = self.call("POST", ["v3", "register"], body)
        self.token, self.id = made["access_token"], made["user_id"]

    def call(self, method, path, body=None, query=""):
        url = self.homeserver.url + "/_matrix/client/" + "/".join(urllib.parse.quote(part, safe="") for part in path)
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url + query, data=data, method=method)
        if self.token:
            request.add_header("authorization", f"Bearer {self.token}")
        for _ in range(100):
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                if error.code != 429:
                    raise AssertionError(f"{method} {url}: {error.code} {error.read()}")
                time.sleep(json.load(error).get("retry_after_ms", 100) / 1000)
        raise AssertionError(f"{method} {url}: rate limited for too long")

    def room(self, invited, **more):
        return self.call("POST", ["v3", "createRoom"], {"invite": invited, "preset": "private_chat", **more})["room_id"]

    def say(self, room, text, **more):
        self.count += 1
        path = ["v3", "rooms", room, "send", "m.room.message", f"txn{self.count}"]
        return self.call("PUT", path, {"msgtype": "m.text", "body": text, **more})["event_id"]

    def messages(self, room, sender):
        """Returns all messages of a sender in a room, oldest first."""
        said, start = [], ""
        while True:
            page = self.call("GET", ["v3", "rooms", room, "messages"], query=f"?dir=b&limit=500{start}")
            said += [e for e in page["chunk"] if e["type"] == "m.room.message" and e["sender"] == sender]
            if not page.get("end") or not page["chunk"]:
                return said[::-1]
            start = "&from=" + urllib.parse.quote(page["end"])

    def wait_for(self, room, sender, expected):
        """Waits until a room has these texts of a sender, and a moment longer to detect duplicates."""
        for _ in range(300):
            texts = [event["content"].get("body") for event in self.messages(room, sender)]
            if len(texts) >= len(expected):
                break
            time.sleep(0.1)
        time.sleep(0.3)
        texts = [event["content"].get("body") for event in self.messages(room, sender)]
        assert texts == expected, f"expected {expected[-3:]} ({len(expected)}), see {texts[-3:]} ({len(texts)})"


class Bot:
    def __init__(self, binary, homeserver, log):
        self.command, self.log = [binary, homeserver.url, "@claw:hs"], log
        self.start()

    def start(self):
        env = dict(os.environ, MATRIX_PASSWORD="pw-claw")
        log = open(self.log, "ab")
        self.process = subprocess.Popen(self.command, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def conversation(ann, claw, homeserver):
    """An invitation with a message right after it, an edited answer and a file."""
    room = ann.room([claw.id], is_direct=True)
    ann.say(room, "hello")
    ann.wait_for(room, claw.id, ["echo: hello"])
    ann.say(room, "change this")
    ann.wait_for(room, claw.id, ["echo: hello", "echo …", "* echo: change this"])
    changed = ann.messages(room, claw.id)[-1]["content"]
    assert changed["m.new_content"]["body"] == "echo: change this", changed
    request = urllib.request.Request(homeserver.url + "/_matrix/media/v3/upload?filename=notes.txt", data=b"milk")
    request.add_header("authorization", f"Bearer {ann.token}")
    request.add_header("content-type", "text/plain")
    place = json.load(urllib.request.urlopen(request))["content_uri"]
    ann.say(room, "notes.txt", msgtype="m.file", url=place, info={"mimetype": "text/plain", "size": 4})
    ann.wait_for(room, claw.id, ["echo: hello", "echo …", "* echo: change this", "echo: milk"])
    return room


def group(ann, bob, claw):
    """In a group it answers only when addressed: by name, by mention, or in a thread that it started."""
    room = ann.room([bob.id, claw.id])
    bob.call("POST", ["v3", "rooms", room, "join"], {})
    ann.say(room, "claw: hi")
    ann.wait_for(room, claw.id, ["echo: hi"])
    own = ann.messages(room, claw.id)[0]["event_id"]
    bob.say(room, "nobody in particular")
    bob.say(room, "by mention", **{"m.mentions": {"user_ids": [claw.id]}})
    bob.say(room, "in a thread", **{"m.relates_to": {"rel_type": "m.thread", "event_id": own}})
    ann.wait_for(room, claw.id, ["echo: hi", "echo: by mention", "echo: in a thread"])
    relation = ann.messages(room, claw.id)[-1]["content"]["m.relates_to"]
    assert (relation["rel_type"], relation["event_id"]) == ("m.thread", own), relation


def refusals(ann, claw):
    """An invitation to an encrypted room is declined with a reason."""
    sealed = {"type": "m.room.encryption", "state_key": "", "content": {"algorithm": "m.megolm.v1.aes-sha2"}}
    room = ann.room([claw.id], is_direct=True, initial_state=[sealed])
    for _ in range(100):
        member = ann.call("GET", ["v3", "rooms", room, "state", "m.room.member", claw.id])
        if member["membership"] == "leave":
            break
        time.sleep(0.1)
    assert member["membership"] == "leave" and "encrypted" in member["reason"], member


def absence(ann, claw, bot):
    """While the bot is stopped, more messages arrive than one sync response holds. Then the bot is killed several times."""
    room = ann.room([claw.id], is_direct=True)
    ann.say(room, "first")
    ann.wait_for(room, claw.id, ["echo: first"])
    bot.kill()
    texts = ["first"] + [f"while it was away {n}" for n in range(60)]
    for text in texts[1:]:
        ann.say(room, text)
    bot.start()
    for pause in (0.4, 0.7, 1.0):
        time.sleep(pause)
        bot.kill()
        texts.append(f"killed after {pause} s")
        ann.say(room, texts[-1])
        bot.start()
    ann.wait_for(room, claw.id, [f"echo: {text}" for text in texts])
    heard = open(bot.log).read()
    assert heard.count('"first"') == 1, "a message that was accepted before the stop was read again"


def check():
    began = time.monotonic()
    build = ["cargo", "build", "--quiet", "--locked", "-p", "polyclaw-channel", "--example", "echo"]
    subprocess.run(build, check=True, cwd=ROOT)
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))
    binary = os.path.join(target, "debug", "examples", "echo")
    with tempfile.TemporaryDirectory() as folder:
        homeserver, bot = Homeserver(folder), None
        try:
            ann, bob, claw = (Person(homeserver, name) for name in ("ann", "bob", "claw"))
            bot = Bot(binary, homeserver, os.path.join(folder, "bot.log"))
            conversation(ann, claw, homeserver)
            group(ann, bob, claw)
            refusals(ann, claw)
            absence(ann, claw, bot)
        except BaseException:
            if bot:
                print(open(bot.log).read()[-4000:])
            raise
        finally:
            if bot:
                bot.kill()
            homeserver.stop()
    print(f"matrix: a real homeserver, two users, rooms, threads, 64 messages over four kills: {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    check()
