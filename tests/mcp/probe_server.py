"""An MCP server without any library. Its tool `probe` reports its environment and which files it can open; `quit` exits; `deep`
returns JSON that is nested too deeply for any parser."""

import json
import os
import sys


def opens(path, flags):
    try:
        os.close(os.open(path, flags))
        return True
    except OSError:
        return False


def probe(arguments):
    return {
        "cwd": os.getcwd(),
        "home": os.environ.get("HOME"),
        "environment": sorted(os.environ),
        "search_path": sys.path,
        "program_path": os.environ.get("PATH"),
        "read": [path for path in arguments.get("read", []) if opens(path, os.O_RDONLY)],
        "written": [path for path in arguments.get("write", []) if opens(path, os.O_WRONLY | os.O_CREAT)],
        "seccomp": next(line.split()[1] for line in open("/proc/self/status") if line.startswith("Seccomp:")),
    }


def answer(method, params):
    if method == "initialize":
        server = {"name": "probe", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": server}
    if method == "tools/list":
        schema = {"type": "object"}
        hints = {"readOnlyHint": True}
        return {"tools": [{"name": name, "inputSchema": schema, "annotations": hints} for name in ("probe", "quit", "deep")]}
    if method == "tools/call" and params["name"] == "quit":
        sys.exit(3)
    if method == "tools/call" and params["name"] == "deep":
        return None
    if method == "tools/call":
        return {"content": [{"type": "text", "text": json.dumps(probe(params.get("arguments") or {}))}]}
    return {}


def main():
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            result = json.dumps(answer(message["method"], message.get("params", {})))
            if result == "null":
                # Nested deeper than any parser should follow.
                result = '{"content":[],"structuredContent":{"a":' + "[" * 200_000 + "]" * 200_000 + "}}"
            print('{"jsonrpc":"2.0","id":%s,"result":%s}' % (json.dumps(message["id"]), result), flush=True)


if __name__ == "__main__":
    main()
