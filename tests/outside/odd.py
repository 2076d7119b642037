"""schemathesis: whatever the schema allows or forbids, the answer is one the schema knows, and never a 500. Each operation
lists its statuses one by one, without a default: an answer that no operation promises is found."""

import os
import subprocess
import sys

# All there are but one, positive_data_acceptance: that what fits the schema is taken. It can not pass here. A cursor must be one
# that was given out, an id one that is there, a name may be taken, an agent's model must be one of the config, a session key or a
# config has a grammar that no JSON schema can say: all of these are strings to the schema and are refused with 400, 404 or 409.
CHECKS = ["--checks", "all", "--exclude-checks", "positive_data_acceptance"]


def requests(name, document, token, excluded, checks):
    """`checks` are arguments: which are made, or which are left out of all."""
    command = [
        os.path.join(os.path.dirname(sys.executable), "schemathesis"),
        "run", document,
        "-H", f"Authorization: Bearer {token}",
        *checks,
        "--phases", "examples,coverage,fuzzing", "--max-examples", "10", "--seed", "1",
        "--exclude-path-regex", excluded, "--request-timeout", "60", "--no-color",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    if done.returncode != 0:
        print(done.stdout[-12000:], done.stderr[-2000:])
        raise SystemExit(f"run.py: schemathesis found something in {name}")
    last = [line for line in done.stdout.splitlines() if line.strip()][-1].strip(" =")
    print(f"schemathesis, {name}: {last}")
