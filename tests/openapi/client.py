"""Uses the generated Python clients with the running servers."""
import os

from polyclaw_control.api.instances import list_instances
from polyclaw_control.client import AuthenticatedClient as ControlClient
from polyclaw_instance.api.agents import list_agents
from polyclaw_instance.api.sessions import list_sessions
from polyclaw_instance.client import AuthenticatedClient as InstanceClient

instance = InstanceClient(base_url=os.environ["INSTANCE_URL"], token=os.environ["INSTANCE_TOKEN"], raise_on_unexpected_status=True)
control = ControlClient(base_url=os.environ["CONTROL_URL"], token=os.environ["CONTROL_TOKEN"], raise_on_unexpected_status=True)

agents = list_agents.sync(client=instance)
assert agents.agents[0].agent_id == "main", agents
sessions = list_sessions.sync(client=instance)
assert sessions.sessions == [], sessions
instances = list_instances.sync(client=control)
print(f"{len(agents.agents)} agent, {len(sessions.sessions)} sessions, {len(instances.instances)} instances")
