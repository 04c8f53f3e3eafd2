"""An agent in Python that knows several daemons: argv[1] gets the name of each execution; the rest is BATON_'s options."""
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "agents" / "python"))
import baton  # noqa: E402  (the path is set just above)

executions = pathlib.Path(sys.argv.pop(1))
agent = baton.Agent("greeter", capacity=2)


@agent.skill(effects="unsafe")
def wait(name: str, seconds: float) -> str:
    """Takes a while."""
    with executions.open("a") as f:
        f.write(name + "\n")
    time.sleep(seconds)
    return name


if __name__ == "__main__":
    agent.run()
