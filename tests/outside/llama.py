"""Runs llama.cpp's server with the model file of the embedded engine, on one thread. `llama.py [key]` prints the address and serves
until its standard input ends, so it never outlives its parent. With a key, requests must send it."""

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
    """Returns the server and its address. It runs in this process as long as the object is referenced."""
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
    # llama.cpp's threads outlive their server, so exit without waiting for them.
    os._exit(0)
