"""An agent with a short life: it registers, and kills itself at once. For tests of supervision."""
import os
import signal

import agent

supervisor = agent.Supervisor(os.environ["BATON_STATE"])
ident = os.environ["BATON_AGENT_ID"]
supervisor.ask("agent.register", card={"agentId": ident, "name": ident, "version": "1", "skills": [{"id": "do", "description": "Does a thing."}]},
               capacity=1, pid=os.getpid(), protocol=[1], instanceId=os.environ["BATON_INSTANCE_ID"], sessionKey=os.urandom(16).hex(),
               endpoint="tcp://127.0.0.1:9")
os.kill(os.getpid(), signal.SIGKILL)
