// Restate: what a step costs there, with the shapes of S1, S2, S3. An invocation is a plan; its steps are ctx.run in a service of a
// process of its own, and the server keeps each result.
// usage: node restate.mjs INGRESS_PORT ADMIN_PORT S1|S2|S3
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import * as restate from "@restatedev/restate-sdk";

// Node.js 22 has it; Debian's may be older.
Promise.withResolvers ??= function withResolvers() {
  const found = {};
  found.promise = new this((resolve, reject) => Object.assign(found, { resolve, reject }));
  return found;
};

const SHAPES = {
  S1: { plans: 10, chain: 100, fan: 0, atATime: 1 },
  S2: { plans: 3, chain: 0, fan: 1000, atATime: 1 },
  S3: { plans: 1000, chain: 5, fan: 0, atATime: 64 },
};
const WIDE = 64;
const [ingress, admin, what] = process.argv.slice(2);
const body = "x".repeat(256);

const bench = restate.service({
  name: "bench",
  handlers: {
    plan: async (ctx, { chain, fan }) => {
      let text = body;
      for (let i = 0; i < chain; i++) {
        const given = text;
        text = await ctx.run("echo", () => given);
      }
      for (let i = 0; i < fan; i += WIDE) {
        const steps = Array.from({ length: Math.min(WIDE, fan - i) }, () => ctx.run("echo", () => body));
        await restate.RestatePromise.all(steps);
      }
      return text;
    },
  },
});

async function post(port, path, value) {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(value),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text}`);
  return text;
}

async function run({ plans, chain, fan, atATime }) {
  let left = plans;
  const start = process.hrtime.bigint();
  const client = async () => {
    while (left-- > 0) await post(ingress, "/bench/plan", { chain, fan });
  };
  await Promise.all(Array.from({ length: atATime }, client));
  return Number(process.hrtime.bigint() - start) / 1e3 / (plans * (chain + fan));
}

if (what === "service") {
  const port = await restate.serve({ services: [bench], port: 0 });
  process.stdout.write(`${port}\n`);
} else {
  const service = spawn(process.execPath, [fileURLToPath(import.meta.url), ingress, admin, "service"], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, RESTATE_LOGGING: "ERROR" },
  });
  const port = await new Promise((resolve) => {
    let said = "";
    service.stdout.on("data", (chunk) => {
      said += chunk;
      const line = said.split("\n").find((text) => /^\d+$/.test(text));
      if (line !== undefined) resolve(line);
    });
  });
  await post(admin, "/deployments", { uri: `http://127.0.0.1:${port}`, force: true });
  const shape = SHAPES[what];
  await run({ ...shape, plans: Math.ceil(shape.plans / 10) });
  process.stdout.write(`${(await run(shape)).toFixed(1)}\n`);
  service.kill("SIGKILL");
  process.exit(0);
}
