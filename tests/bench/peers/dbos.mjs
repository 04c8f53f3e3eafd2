// DBOS on PostgreSQL: what a step costs there, with the shapes of S1, S2, S3. A workflow is a plan; its steps run in this process.
// usage: node dbos.mjs URL S1|S2|S3
import { DBOS } from "@dbos-inc/dbos-sdk";

const SHAPES = {
  S1: { plans: 10, chain: 100, fan: 0, atATime: 1 },
  S2: { plans: 3, chain: 0, fan: 1000, atATime: 1 },
  S3: { plans: 1000, chain: 5, fan: 0, atATime: 64 },
};
const WIDE = 64;
const [url, what] = process.argv.slice(2);
const body = "x".repeat(256);
const echo = async (text) => text;

const plan = DBOS.registerWorkflow(
  async (chain, fan) => {
    let text = body;
    for (let i = 0; i < chain; i++) {
      const given = text;
      text = await DBOS.runStep(() => echo(given), { name: "echo" });
    }
    for (let i = 0; i < fan; i += WIDE) {
      const steps = Array.from({ length: Math.min(WIDE, fan - i) }, () => DBOS.runStep(() => echo(body), { name: "echo" }));
      await Promise.all(steps);
    }
    return text;
  },
  { name: "plan" },
);

async function run({ plans, chain, fan, atATime }) {
  let left = plans;
  const start = process.hrtime.bigint();
  const client = async () => {
    while (left-- > 0) {
      const handle = await DBOS.startWorkflow(plan)(chain, fan);
      await handle.getResult();
    }
  };
  await Promise.all(Array.from({ length: atATime }, client));
  return Number(process.hrtime.bigint() - start) / 1e3 / (plans * (chain + fan));
}

DBOS.setConfig({ name: "bench", systemDatabaseUrl: url, logLevel: "error", runAdminServer: false });
await DBOS.launch();
const shape = SHAPES[what];
await run({ ...shape, plans: Math.ceil(shape.plans / 10) });
process.stdout.write(`${(await run(shape)).toFixed(1)}\n`);
process.exit(0);
