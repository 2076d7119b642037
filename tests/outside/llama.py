"""llama.cpp's own server on the file the embedded engine reads, one thread. `llama.py` alone prints its address and
serves until its input ends, so it outlives nobody who started it; an argument is the key it then wants."""

import os
import socket
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
WEIGHTS = os.path.join(HERE, "..", "..", ".tools", "model", "smollm2.gguf")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def serve(key=None):
    """The server, which runs in this process as long as somebody holds it, and its address."""
    import xllamacpp as xlc

    params = xlc.CommonParams()
    params.model.path = WEIGHTS
    params.hostnames = ["127.0.0.1"]
    params.port = free_port()
    params.n_ctx = 4096
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.verbosity = -1
    if key:
        params.api_keys = [key]
    server = xlc.Server(params)
    return server, server.listening_address


if __name__ == "__main__":
    server, url = serve(*sys.argv[1:])
    print(url, flush=True)
    sys.stdin.read()
    # llama.cpp's threads outlive their server; nothing is left to wait for.
    os._exit(0)
