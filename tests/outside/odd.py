"""Runs schemathesis: for valid and invalid requests, each response must be declared in the schema and must not be a 500. Operations
list their statuses one by one, without a default, so an undeclared response is found."""

import os
import subprocess
import sys

# All checks except positive_data_acceptance, which requires that every valid request succeeds. That cannot hold here: a cursor must
# have been issued, an id must exist, a name may be taken, an agent's model must be in the config, and session keys and configs have
# a grammar that JSON schema cannot express. The schema describes all of them as strings, and the API returns 400, 404 or 409.
CHECKS = ["--checks", "all", "--exclude-checks", "positive_data_acceptance"]


def requests(name, document, token, excluded, checks):
    """`checks` are the arguments that select checks."""
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
        raise SystemExit(f"run.py: schemathesis reported failures in {name}")
    last = [line for line in done.stdout.splitlines() if line.strip()][-1].strip(" =")
    print(f"schemathesis, {name}: {last}")
