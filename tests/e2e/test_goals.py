"""Goals in words and what the embedded planner makes of them with the real agents of the tour and of the quickstart: the right skills, or
a refusal. A goal that no agent can do is never done."""
import json
import re
import unittest

from harness import ROOT, BatonTest

# Goal: the skills, in their order; None = refused. Both sets of agents, unless a set says otherwise.
DONE = {
    # what the README and the cards of the agents show
    "compute 6 * 7": "calc.evaluate", "calculate (17 + 4) * 2": "calc.evaluate", "compute round(sqrt(2), 3)": "calc.evaluate",
    'compute "2 + 3"': "calc.evaluate", "what is 2 + 2?": "calc.evaluate", "What's 10 / 4?": "calc.evaluate", "how much is 6 * 7?": "calc.evaluate",
    "2 + 2": "calc.evaluate", "please evaluate 2 ^ 10": "calc.evaluate", "compute -3 + 5": "calc.evaluate",
    "Could you compute 17 % 5, please?": "calc.evaluate", "compute 1/2 + 1/4": "calc.evaluate",
    "read /var/log/dpkg.log": "files.read", "open the file /var/log/notes.txt": "files.read", "show the contents of /var/log/dpkg.log": "files.read",
    "print /var/log/dpkg.log": "files.read", "display the log /var/log/dpkg.log": "files.read", "cat /var/log/dpkg.log": "files.read",
    "Could you please read /var/log/dpkg.log?": "files.read", "I want you to read /var/log/dpkg.log": "files.read",
    "read all lines of the text in /var/log/dpkg.log": None,  # it reads files, it picks no lines
    "list the files in /var/log": "files.list", "which files are in the folder /var/log?": "files.list", "list all files in /var/log": "files.list",
    # the pattern is a regular expression, as the card says
    'find "x" in /var/log/dpkg.log as regular expression': "files.grep",
    "list the contents of /var/log": "files.list", "ls /var/log": "files.list", "list /var/log": "files.list",
    'search /var/log/dpkg.log for "error"': "files.grep", 'find the lines with "install" in /var/log/dpkg.log': "files.grep",
    'grep "install" in /var/log/dpkg.log': "files.grep", "parse the csv file /var/log/sales.csv": "files.csv",
    'query the database with "SELECT 1"': "sql.query", 'run the sql "SELECT count(*) FROM data"': "sql.query",
    'execute "DELETE FROM data"': "sql.execute", 'delete rows from the table with "DELETE FROM data"': "sql.execute",
    "list the tables of the database": "sql.schema", "describe the database schema": "sql.schema",
    "what time is it?": "calc.now", "tell me the current date": "calc.now", "which weekday is today?": "calc.now", "what is the date today": "calc.now",
    "compute the average of 3, 4 and 8": "calc.statistics", "what is the median of 1.5 and 2.5?": "calc.statistics",
    "compute the sum of 3, 4 and 8": "calc.statistics",
    'filter /var/log/dpkg.log by "install"': "files.grep", "tell me the time in UTC": "calc.now", 'write "hello" to /tmp/x.txt': "files.write",
    "what is the average of 10 and 20?": "calc.statistics", "what is 2+2=?": "calc.evaluate", "which columns does the table have?": "sql.schema",
    "what is the current weekday?": "calc.now", "compute sin(1)": "calc.evaluate", "list the names of the files in /var/log": "files.list",
    # arithmetic in words
    "add 1 to 41": "calc.evaluate", "sum 3 and 4": "calc.evaluate", "compute 6 times 7": "calc.evaluate", "what is 6 times 7": "calc.evaluate",
    "compute 3 percent of 40": "calc.evaluate", "what is 15% of 240": "calc.evaluate", "add 2 and 3": "calc.evaluate",
    # what is counted, and what is looked for without quotes
    "count the words in /var/log/dpkg.log": "files.count", "how many lines are in /var/log/dpkg.log?": "files.count",
    "count the lines in /var/log/dpkg.log": "files.count", "search /var/log/dpkg.log for ERROR": "files.grep",
    # switches by their names
    'find "x" in /var/log/dpkg.log ignoring case': "files.grep", 'search /var/log/dpkg.log for "x" with ignore case': "files.grep",
    "list the files in /var/log recursive": "files.list",
    "read the log /var/log/dpkg.log and tell me what is in it": "files.read",
    # several steps
    "read /var/log/dpkg.log, then count the installs per day, then report the busiest day": "files.read > calc.count_per_day > calc.busiest",
    "read /var/log/dpkg.log and count the errors per hour": "files.read > calc.count_per_day",
    "read /var/log/dpkg.log, then save it to /tmp/copy.log": "files.read > files.write",
    "read /var/log/dpkg.log, count the installs per day and write the counts to /tmp/counts.txt": "files.read > calc.count_per_day > files.write",
    "parse the csv file /var/log/sales.csv, then load the rows into the table \"sales\", then query the database with \"SELECT 1\"":
        "files.csv > sql.load > sql.query",
    "read /var/log/a.csv, then compute the average": "files.read > calc.statistics",
    "compute 2 + 3 and compute 4 * 5": "calc.evaluate > calc.evaluate",
    "list the files in /var/log and then write the result to /tmp/list.txt": "files.list > files.write",
}
NOT_DONE = [
    # a verb that no agent knows, whatever the words behind it
    "delete /var/log/dpkg.log", "compress /var/log/dpkg.log", "mail /var/log/dpkg.log to bob", "upload the file /var/log/dpkg.log", "remove the file /var/log/dpkg.log",
    "encrypt /var/log/dpkg.log", "rename /var/log/dpkg.log to /var/log/old.log", "copy /var/log/dpkg.log to /tmp/x", "move the log /var/log/dpkg.log to /tmp",
    "download https://example.org/a.csv", "translate /var/log/dpkg.log into german", "truncate the log /var/log/dpkg.log", "chmod /var/log/dpkg.log",
    "post the report to slack", "send an email to bob", "book a flight to paris", "install nginx", "restart the server", "deploy the app", "reboot",
    "shut down the computer", "play some music", "write a poem about the sea", "draw a picture of the file", "tell me a joke", "order a pizza",
    "buy 3 apples", "zip the folder /var/log", "print the report on the printer", "backup the database", "drop the table", "update the weather", "email me the current date",
    # a question that no agent can answer
    "what is the capital of France", "what was the result?", "who is the president?", "how old are you?", "what is the weather today?", "what is love",
    "where is the log?", "what happened today?", "what is the time in Tokyo?", "what did you do?", "why is the sky blue?", "is it raining?",
    "what is the largest file in /var/log?", "who wrote /var/log/dpkg.log?", "how big is the file /var/log/dpkg.log",
    # a verb that one knows, of something that it cannot
    "how many days are between 2026-01-01 and 2026-03-01?", "how many days until christmas?", "add milk to the shopping list",
    "compute the capital of France", "compute the weather", "compute the meaning of life", "calculate my taxes", "count the sheep",
    "count to 10", "read my mind", "read a book", "open the door", "show me the money", "list the presidents", "find my keys", "search the web",
    "show the size of the file /var/log/dpkg.log", "show the number of lines in /var/log/dpkg.log", "read /var/log/dpkg.log to bob", "read /var/log/dpkg.log aloud",
    "list the users in /etc/passwd", "list the 5 largest files in /var/log", "read the first 10 lines of /var/log/dpkg.log", "tell the current date to bob", "tell bob the time",
    "compute the 2 largest of 3, 4 and 8", "compute 6 * 7 in binary", "load the dishwasher", "store the wine in the cellar", "save the world", "report the murder to the police",
    "query the oracle", "add 30 days", "format /dev/sda", "compute the average",
    "report \"x\" to bob", "sort /var/log/dpkg.log", "create /tmp/x", "say hello", "checksum of /var/log/dpkg.log",
    "how many files are in /var/log?", "list", "today", "help", "text bob", "log out", "set the clock", "change my password",
    'find and replace "a" in /var/log/dpkg.log', "read and mail /var/log/dpkg.log", "read the file and compress /var/log/dpkg.log", "open /var/log/dpkg.log in an editor",
    "open https://example.org", 'delete the file "x"', "list the agents", "what is 2 + 2 in binary?", "what is the difference between 3 and 5?", "is 7 a prime number?",
    "read /var/log/dpkg.log, then report the busiest person", "show differences between /var/log/a.log and /var/log/b.log", "compute pi",
    "tell me", "tell", "what is the current temperature?", "who is logged in?", "describe yourself",
    'find "x" in /var/log/dpkg.log with context',
    "read /var/log/dpkg.log with an offset",
    'write "a" and "b" to /tmp/baton-x/o.txt', 'search /var/log/x.log for "error" and "x"', 'execute "DELETE FROM data" and "data"',
    'read /var/log/dpkg.log, then write "x" and "log" to /tmp/x.txt', "convert 3 miles to km", "list the largest files in /var/log", "insert coin", "what is the peak?",
    # the whole goal is refused for one part of it
    "compute 7 * 6 and add 1 to it", "read /var/log/dpkg.log, then mail it to bob", "read /var/log/dpkg.log and upload it", "compute 6 * 7, then send it to bob",
]
TOUR = {'say "hello"': "plain.say", 'say "good morning", please': "plain.say", 'say "delete it"': "plain.say", 'shout "hello"': None, "say it to bob": None,
        'say "hello" to bob': None}
QUICKSTART = {'say "hello"': None, "run /bin/sh": None, "unsteady": None}


GOAL = "compute 6 * 7"


class Goals(BatonTest):
    def setUp(self):
        self.config = {"tour.yaml": ROOT / "deploy" / "examples" / "tour.yaml", "quickstart.yaml": ROOT / "deploy" / "quickstart.yaml"}

    def start(self, name):
        text = self.config[name].read_text().replace("@ROOTS@", "/var/log").replace("@EXAMPLES@", str(ROOT / "deploy" / "examples"))
        text = re.sub(r"^listen:.*\n( +(control|events):.*\n)*", "", text, flags=re.M)  # the harness has its own
        return self.daemon(config=text.replace("%", "%%"))

    def check(self, d, goals):
        wrong = []
        for goal, expected in goals.items():
            answer = d.ask_raw("plan.lint", goal=goal)
            if answer["ok"] and answer["valid"]:
                is_ = " > ".join("%s.%s" % (r["agentId"], r["skill"]) for r in answer["routes"])
            else:
                is_ = None
                said = json.dumps(answer)
                if "Nearest: " not in said:
                    wrong.append("%s: the refusal does not name the nearest skills: %s" % (goal, said[:400]))
            if is_ != expected:
                wrong.append("%s\n    is %s, expected %s\n    %s" % (goal, is_, expected, json.dumps(answer.get("routes") or answer.get("problems") or answer)[:500]))
        self.assertEqual(wrong, [], "\n".join(wrong))

    def test_goals_of_the_tour(self):
        d = self.start("tour.yaml")
        self.check(d, {**DONE, **dict.fromkeys(NOT_DONE), **TOUR})
        self.assertEqual(d.cli("run", "--quiet", 'say "hello"'), "hello\n")
        self.assertEqual(d.cli("run", "--quiet", "what is 2 + 2?"), "4\n")
        self.assertEqual(d.cli("run", "--quiet", "what is 15% of 240"), "36\n")
        self.assertIn("| mean | 5 |", d.cli("run", "--quiet", "compute the average of 3, 4 and 8"))
        done = d.cli_any("run", "--quiet", "delete /var/log/dpkg.log")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, r"(?m)^ *error: no agent can do \"delete /var/log/dpkg.log\": .*\n *Nearest: ")
        said = d.ask("session.say", sessionId="s", text="what was the result?")
        self.assertIn("No plan could be made", said["reply"])
        self.assertNotIn("planId", said)

    def test_wishes_for_a_model_are_refused_by_the_planner_that_has_none(self):
        d = self.start("tour.yaml")
        plan = {"steps": [{"stepId": "a", "agentId": "calc", "skill": "evaluate", "task": "compute 6 * 7"}]}
        path = self.write_plan(d, "plan.json", plan)
        for args, said in (((GOAL, "--constraint", "never use calc"), 'keeps to no constraints ("never use calc"): use a model planner'),
                           ((GOAL, "--constraint", "be quick", "--planner", "keyword"), "keeps to no constraints"),
                           ((GOAL, "--planner", "keyword", "--on-invalid-plan", "synthesize"), 'onInvalidPlan "synthesize" is for a model planner'),
                           ((GOAL, "--on-invalid-plan", "interrupt"), 'onInvalidPlan "interrupt" is for a model planner'),
                           (("--plan", path, "--constraint", "be quick"), "goes with a goal; a plan is as it stands")):
            done = d.cli_any("run", *args)
            self.assertEqual((done.returncode, done.stdout), (2, ""), args)
            self.assertIn(said, done.stderr)
        done = d.cli_any("plan", GOAL, "--constraint", "be quick")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("keeps to no constraints", done.stderr)
        for fields in ({"goal": GOAL}, {"goal": GOAL, "planner": "keyword", "dryRun": True}, {"plan": plan}):
            answer = d.ask_raw("plan.submit", constraints=["be quick"], **fields)
            self.assertEqual((answer["ok"], answer["error"]["code"]), (False, "INVALID"), answer)
            self.assertIn("this plan is made already" if "plan" in fields else "keeps to no constraints", answer["error"]["message"])
        self.assertEqual(d.cli("run", "--quiet", GOAL, "--on-invalid-plan", "fail"), "42\n")
        # What a plan says of the constraints that it was made under is kept: it binds nobody any more.
        kept = d.wait_plan(d.submit({**plan, "constraints": ["be quick"]}))
        self.assertEqual((kept["status"], d.ask("plan.get", planId=kept["planId"])["about"]["constraints"]), ("completed", ["be quick"]))
        for verb in ("run", "plan"):
            told = d.cli(verb, "--help")
            self.assertRegex(told, "constraint .*model planner")
            self.assertRegex(told, r"on-invalid-plan [a-z|]*\s+when a model planner")

    def test_goals_of_the_quickstart(self):
        self.check(self.start("quickstart.yaml"), {**DONE, **dict.fromkeys(NOT_DONE), **QUICKSTART})


if __name__ == "__main__":
    unittest.main(verbosity=2)
