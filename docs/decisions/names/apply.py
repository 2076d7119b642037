#!/usr/bin/env python3
"""Bulk semantic renames with rust-analyzer.
usage: rename.py ROOT MAPPING.tsv   rows: file<TAB>old<TAB>new[<TAB>kind][<TAB>line]
kind: struct enum trait type fn const static mod field variant (guessed when empty)."""
import json, os, re, subprocess, sys, threading, queue, time, pathlib, urllib.parse

class Lsp:
    def __init__(self, root, server=os.environ.get("RUST_ANALYZER", "rust-analyzer")):
        self.root = os.path.realpath(root)
        env = dict(os.environ); env.pop("RUSTC_WORKSPACE_WRAPPER", None)
        self.p = subprocess.Popen([server], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env)
        self.id = 0; self.waiting = {}; self.lock = threading.Lock(); self.quiescent = threading.Event(); self.health = None
        threading.Thread(target=self.read, daemon=True).start()
        self.call("initialize", {"processId": os.getpid(), "rootUri": self.uri(self.root), "workspaceFolders": [{"uri": self.uri(self.root), "name": "w"}],
            "capabilities": {"workspace": {"workspaceEdit": {"documentChanges": True, "resourceOperations": ["create", "rename", "delete"]}, "didChangeWatchedFiles": {"dynamicRegistration": True}, "configuration": False},
                "textDocument": {"rename": {"prepareSupport": True}, "publishDiagnostics": {}}, "window": {"workDoneProgress": True}, "experimental": {"serverStatusNotification": True}},
            "initializationOptions": {"checkOnSave": False, "cargo": {"allTargets": True, "buildScripts": {"enable": True}, "targetDir": True}, "procMacro": {"enable": True}, "files": {"watcher": "client", "exclude": ["target", ".tools", "web", "node_modules"]}, "cachePriming": {"enable": True, "numThreads": 2}, "lru": {"capacity": 1024}}})
        self.notify("initialized", {})
    def uri(self, path): return "file://" + urllib.parse.quote(path)
    def path(self, uri): return urllib.parse.unquote(uri[len("file://"):])
    def send(self, msg):
        body = json.dumps(msg).encode()
        with self.lock:
            self.p.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body); self.p.stdin.flush()
    def read(self):
        f = self.p.stdout
        while True:
            n = None
            while True:
                line = f.readline()
                if not line: return
                line = line.strip()
                if not line: break
                if line.lower().startswith(b"content-length:"): n = int(line.split(b":")[1])
            msg = json.loads(f.read(n))
            if "id" in msg and "method" in msg:
                self.send({"jsonrpc": "2.0", "id": msg["id"], "result": [None] * len(msg["params"]["items"]) if msg["method"] == "workspace/configuration" else None})
            elif "id" in msg:
                self.waiting.pop(msg["id"]).put(msg)
            elif msg.get("method") == "experimental/serverStatus":
                self.health = msg["params"]
                (self.quiescent.set if msg["params"].get("quiescent") else self.quiescent.clear)()
    def call(self, method, params, timeout=600):
        self.id += 1; q = queue.Queue(); self.waiting[self.id] = q
        self.send({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params})
        return q.get(timeout=timeout)
    def notify(self, method, params): self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def rename(self, path, line, col, new):
        for _ in range(8):
            r = self.call("textDocument/rename", {"textDocument": {"uri": self.uri(path)}, "position": {"line": line, "character": col}, "newName": new})
            if r.get("error", {}).get("code") == -32801 or "content modified" in str(r.get("error", "")):
                time.sleep(0.3); continue
            return r
        return r
    def apply(self, edit):
        changed, files = [], 0
        docs = edit.get("documentChanges") or [{"textDocument": {"uri": u}, "edits": e} for u, e in (edit.get("changes") or {}).items()]
        moves = []
        for d in docs:
            if d.get("kind") == "rename": moves.append((self.path(d["oldUri"]), self.path(d["newUri"]))); continue
            if "kind" in d: raise Exception("op " + d["kind"])
            p = self.path(d["textDocument"]["uri"]); files += 1
            lines = open(p, encoding="utf8", newline="").read().split("\n")
            starts = [0]
            for l in lines: starts.append(starts[-1] + len(l) + 1)
            text = "\n".join(lines)
            def off(pos):
                l = lines[pos["line"]]
                u = l.encode("utf-16-le")[: pos["character"] * 2].decode("utf-16-le")
                return starts[pos["line"]] + len(u)
            for e in sorted(d["edits"], key=lambda e: (e["range"]["start"]["line"], e["range"]["start"]["character"]), reverse=True):
                text = text[: off(e["range"]["start"])] + e["newText"] + text[off(e["range"]["end"]):]
            open(p, "w", encoding="utf8", newline="").write(text); changed.append((p, 2))
        for a, b in moves:
            if os.path.exists(b): raise Exception("exists " + b)
            os.makedirs(os.path.dirname(b), exist_ok=True); os.rename(a, b)
            changed.append((a, 3)); changed.append((b, 1))
        self.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": self.uri(p), "type": t} for p, t in changed]})
        return files, moves

DEF = {"struct": r"\bstruct\s+", "enum": r"\benum\s+", "trait": r"\btrait\s+", "type": r"\btype\s+", "fn": r"\bfn\s+", "const": r"\bconst\s+", "static": r"\bstatic\s+", "mod": r"\bmod\s+", "union": r"\bunion\s+"}
def find(path, old, kind, line):
    text = open(path, encoding="utf8").read().split("\n")
    if kind in ("field", "variant", "local", "any"):
        pats = [r"(?<![A-Za-z0-9_.])"]
    elif kind: pats = [DEF[kind]]
    else: pats = [DEF[k] for k in (("struct", "enum", "trait", "type") if old[:1].isupper() and not old.isupper() else ("const", "static") if old.isupper() else ("fn", "mod"))]
    hits = []
    for n, l in enumerate(text):
        code = l.split("//")[0] if kind not in ("any",) else l
        for p in pats:
            for m in re.finditer(p + "(" + re.escape(old) + r")\b" if p else "(" + re.escape(old) + ")", code):
                hits.append((n, len(l[: m.start(1)].encode("utf-16-le")) // 2))
    if not hits: return None
    if line: hits.sort(key=lambda h: abs(h[0] + 1 - int(line)))
    elif len(hits) > 1: return ("many", len(hits))
    return hits[0]

def main():
    root, mapping = sys.argv[1], sys.argv[2]
    t0 = time.time(); lsp = Lsp(root)
    time.sleep(3)
    while not lsp.quiescent.wait(5): pass
    time.sleep(2)
    while not lsp.quiescent.wait(5): pass
    print("ready in %.0f s: %s" % (time.time() - t0, lsp.health), flush=True)
    ok = bad = 0; moved = {}
    for n, row in enumerate(open(mapping, encoding="utf8"), 1):
        row = row.rstrip("\n")
        if not row.strip() or row.startswith("#"): continue
        f = (row.split("\t") + ["", "", ""])[:5]
        file, old, new, kind, line = (x.strip() for x in f)
        path = os.path.join(lsp.root, file); path = moved.get(path, path)
        for a, b in moved.items():
            if path.startswith(a + "/"): path = b + path[len(a):]
        if not os.path.exists(path): print(f"{n} NOFILE {row}", flush=True); bad += 1; continue
        at = find(path, old, kind, line)
        if at is None or at[0] == "many": print(f"{n} {'NOTFOUND' if at is None else 'AMBIGUOUS %d' % at[1]} {row}", flush=True); bad += 1; continue
        t = time.time()
        try: r = lsp.rename(path, at[0], at[1], new)
        except queue.Empty: print(f"{n} TIMEOUT {row}", flush=True); bad += 1; continue
        if r.get("error") or not r.get("result"): print(f"{n} REFUSED {row}: {r.get('error')}", flush=True); bad += 1; continue
        try: files, moves = lsp.apply(r["result"])
        except Exception as e: print(f"{n} FAILED {row}: {e}", flush=True); bad += 1; continue
        for a, b in moves: moved[a] = b
        ok += 1
        print(f"{n} ok {old} -> {new} {files} files {time.time()-t:.1f}s", flush=True)
    print(f"done: {ok} ok, {bad} bad, {time.time()-t0:.0f} s")
    lsp.p.kill()
main()
