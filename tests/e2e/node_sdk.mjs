// What test_node_sdk.py runs: baton.mjs against a real daemon; or, with the argument `serve`, an agent for baton-agent-check.
import assert from "node:assert/strict";
import { Agent, BatonError, CallFailed, Client, Fail, Handoff, NeedsInput, Result, daemon } from "../../agents/node/baton.mjs";

const ran = [];
const odd = { // values that JSON.stringify would drop or change without a word
  map: () => ({ m: new Map([["a", 1]]) }), set: () => [new Set([1])], bytes: () => ({ b: Buffer.from("x") }), view: () => new Uint8Array(2),
  call: () => ({ f() {} }), symbol: () => Symbol("x"), lone: () => "a\ud800", round: () => { const o = {}; o.o = o; return o; },
};
const agent = new Agent("js", { capacity: 3 });
agent.skill("greet", { description: "Greets somebody by name.", properties: { name: { type: "string" } } }, ({ name = "world" }) => `Hello, ${name}!`);
agent.skill("wait", { description: "Waits.", properties: { seconds: { type: "number" } }, effects: "idempotent" }, async ({ seconds = 1 }, step) => {
  ran.push(step.key);
  step.progress({ percent: 50, text: "half" });
  await step.sleep(seconds * 1000);
  return "waited";
});
agent.skill("trouble", { description: "Fails.", properties: { kind: { type: "string" } } }, ({ kind }) => {
  if (kind === "nan") return { rows: [1, NaN] };
  if (kind in odd) return odd[kind]();
  if (kind === "word") throw new Fail("no such class", "NO_SUCH_CLASS");
  if (kind === "class") throw new Fail("no such table", "RESOURCE_NOT_FOUND", { retryable: false });
  if (kind === "handoff") throw new Handoff("elsewhere", "not mine");
  throw new TypeError("a mistake");
});
agent.skill("year", { description: "Asks.", properties: { year: { type: "integer" } } }, ({ year }) => {
  if (year === undefined) throw new NeedsInput("Which year?", { type: "object", properties: { year: { type: "integer" } } });
  return new Result({ text: `it is ${year}`, data: { year }, state: { year } });
});
agent.skill("synthesize", { description: "Writes." }, async function* (_, step) {
  step.usage({ inputTokens: 3 });
  yield "one ";
  yield "two ";
  yield "thrée";
});
agent.skill("research", { description: "Finds it out.", properties: { n: { type: "integer" } }, calls: true }, ({ n }, step) => {
  const twice = step.call("other", "double", { n }).double;
  const [good, bad] = step.callAll(["other", "double", { n: twice }], ["other", "double", { n: -1 }]);
  try {
    step.call("other", "double", { n: -2 });
  } catch (e) {
    if (!(e instanceof CallFailed)) throw e;
    return { found: good.data, bad: bad.error, caught: e.result.errorClass, left: step.turnsLeft, tools: step.tools.map((t) => t.skill) };
  }
});
agent.skill("fickle", { description: "Changes its mind.", calls: true }, (_, step) => step.call("other", step.turns.length ? "halve" : "double", { n: 1 }));
agent.skill("file", { description: "Writes a file." }, (_, step) => {
  step.artifact("rows 1.csv".replace(" ", "-"), "a,b\n1,2\n", "text/csv");
  return "written";
});
agent.skill("read", { description: "Reads it.", properties: { file: { type: "string" } } }, ({ file }, step) => step.open(file).toString());
const other = new Agent("other");
other.skill("double", { description: "Doubles.", properties: { n: { type: "integer" } } }, ({ n }) => {
  if (n < 0) throw new Fail("only from 0 on", "VALIDATION_ERROR", { retryable: false });
  return { double: 2 * n };
});

if (process.argv[2] === "serve") await agent.run(process.argv.slice(3));

console.error = () => {};
const call = async (...args) => (await agent.call(...args));
assert.deepEqual(await call("greet", { name: "Ada" }), { outcome: "completed", result: { text: "Hello, Ada!" } });
assert.match((await call("greet", { nme: "x" })).failure.message, /parameters\.nme: there is no such parameter; there are name/);
assert.match((await call("greet", { name: 7 })).failure.message, /parameters\.name: expected string, got 7/);
assert.match((await call("trouble", { kind: "nan" })).failure.message, /data\.rows\.1: NaN/);
for (const [kind, said] of [["map", /data\.m: a Map cannot be sent/], ["set", /data\.0: a Set cannot be sent/], ["bytes", /data\.b: a Buffer cannot be sent/],
  ["view", /data: a Uint8Array cannot be sent/], ["call", /data\.f: a function cannot be sent/], ["symbol", /data: a symbol cannot be sent/],
  ["lone", /text: the text is not valid Unicode/], ["round", /data(\.o){15}: nested too deeply, at most 14 levels/]]) {
  const { failure } = await call("trouble", { kind });
  assert.match(failure.message, said);
  assert.equal(failure.class, "VALIDATION_ERROR", kind);
}
assert.match((await call("trouble", { kind: "word" })).failure.message, /class 'NO_SUCH_CLASS': expected one of TOOL_NOT_FOUND, /);
for (const [wrong, said] of [[() => new Agent("prüf"), /agentId 'prüf': expected 1 to 64 of A-Z a-z 0-9 _ \. -/], [() => new Agent(), /agentId 'undefined'/],
  [() => new Agent("x".repeat(65)), /agentId/], [() => new Agent("x", { capacity: 0 }), /capacity: expected 1 to 64, got 0/],
  [() => new Agent("x", { capacity: 65 }), /capacity: expected 1 to 64, got 65/], [() => new Agent("x").skill("größe", {}, () => 1), /skill 'größe': expected 1 to 64/],
  [() => new Agent("x").skill("s", () => 1), /skill s: expected \(id, about, handler\)/], [() => new Agent("x").skill("s", "Greets.", () => 1), /skill s: expected/],
  [() => new Agent("x").skill("s", {}, "greet"), /skill s: expected/]]) {
  assert.throws(wrong, said);
}
new Agent("x".repeat(64), { capacity: 64 }).skill("s".repeat(64), {}, () => 1);
assert.equal((await call("wait", { seconds: 60 }, { deadlineMs: 20 })).failure.class, "TIMEOUT");
assert.equal((await call("synthesize")).result.text, "one two thrée");
assert.deepEqual(await call("research", { n: 3 }), { outcome: "calls", calls: [{ id: "t1-1", agentId: "other", skill: "double", parameters: { n: 3 } }] });
const turn1 = { calls: [{ id: "t1-1", agentId: "other", skill: "double" }], results: [{ id: "t1-1", status: "completed", data: { double: 6 } }] };
assert.deepEqual((await call("research", { n: 3 }, { turns: [turn1] })).calls.map((c) => [c.id, c.parameters.n]), [["t2-1", 6], ["t2-2", -1]]);
assert.match((await call("fickle", {}, { turns: [turn1] })).failure.message, /turn 1 called other\/double, and now the handler calls other\/halve there/);

for (const turn of [1, 2]) { // the same agent, two daemons
  const d = await daemon({ agents: [agent, other] });
  try {
    assert.equal(await d.ask("js", "greet", { name: "Ada" }), "Hello, Ada!");
    if (turn === 2) break;
    const plan = (skill, parameters = {}, policy = {}) => ({ steps: [{ stepId: "s1", agentId: "js", skill, task: "do the one step", parameters }], policy: { maxRetries: 0, ...policy } });

    const asks = await d.submit(plan("year"));
    while (!(await d.reviews(asks)).length) await new Promise((resolve) => setTimeout(resolve, 20));
    await d.decide((await d.reviews(asks))[0].reviewId, "approve", { edit: { year: 1999 } });
    assert.match((await d.result(asks)).aggregatedResult, /it is 1999/);

    for (const [kind, cls] of [["nan", "VALIDATION_ERROR"], ["class", "RESOURCE_NOT_FOUND"], ["handoff", "VALIDATION_ERROR"], ["bug", "UNKNOWN"]]) {
      const id = await d.submit(plan("trouble", { kind }));
      const ends = [];
      for await (const e of d.watch(id, { types: ["plan_step_completed"] })) ends.push(e.errorClass);
      assert.deepEqual(ends, [cls], kind);
    }

    const files = await d.submit({ steps: [{ ...plan("file").steps[0], stepId: "w" }, { ...plan("read", { file: "{{results.w.artifact}}" }).steps[0], stepId: "r", dependsOn: ["w"] }] });
    assert.equal((await d.result(files)).status, "completed");
    assert.equal((await d.result(files, "r")).text, "a,b\n1,2\n");
    const [made] = (await d.result(files, "w")).artifacts;
    assert.deepEqual([made.name, made.mediaType, (await d.artifact(made)).toString()], ["rows-1.csv", "text/csv", "a,b\n1,2\n"]);
    await assert.rejects(d.artifact({ ...made, sha256: "0".repeat(64) }), /was changed/);
    assert.equal((await call("read", { file: made.uri }, { artifacts: [], artifactDir: "/x/y" })).failure.class, "PERMISSION_DENIED");

    const research = plan("research", { n: 3 });
    research.steps[0].tools = ["other/double"];
    const looks = await d.submit(research);
    assert.deepEqual(JSON.parse((await d.result(looks)).aggregatedResult),
      { found: { double: 12 }, bad: "only from 0 on", caught: "VALIDATION_ERROR", left: 27, tools: ["double"] });

    const events = [];
    for await (const e of d.watch(await d.submit(plan("greet", {}, { synthesis: "agent:js" })))) events.push(e);
    assert.deepEqual(events.map((e) => e.planSeq), events.map((_, i) => i + 1));
    assert.equal(events.filter((e) => e.type === "text_delta").map((e) => e.text).join(""), "one two thrée");

    const long = await d.submit(plan("wait", { seconds: 600 }));
    while (!ran.some((key) => key.startsWith(long))) await new Promise((resolve) => setTimeout(resolve, 20));
    await d.cancel(long, "no need");
    assert.equal((await d.result(long)).status, "cancelled");
    await assert.rejects(d.get("01A20A4C-62AF-7049-8B0F-C6EA08165C6B"), (e) => e instanceof BatonError && e.code === "NOT_FOUND");
    const same = await d.submit(plan("greet"), { clientKey: "k" });
    assert.equal(await d.submit(plan("greet"), { clientKey: "k" }), same);
  } finally {
    await d.close();
  }
}
await assert.rejects(new Client({ state: "/nonexistent", patienceMs: 0 }).agents(), /UNAVAILABLE: no supervisor runs in \/nonexistent/);
console.log("all is well");
