// BullMQ with a Redis that keeps each command (appendfsync always): what a step costs there, with the shapes of S1, S2, S3.
// usage: node bullmq.mjs PORT S1|S2|S3      the worker is a process of its own: node bullmq.mjs PORT worker
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { Queue, QueueEvents, Worker } from "bullmq";

const SHAPES = {
  S1: { chains: 10, length: 100, atATime: 1 },
  S2: { chains: 5000, length: 1, atATime: 64 },
  S3: { chains: 1000, length: 5, atATime: 64 },
};
const [port, what] = process.argv.slice(2);
const connection = { host: "127.0.0.1", port: Number(port), maxRetriesPerRequest: null };
const body = "x".repeat(256);

// A chain is its number and how many of its steps have run; each result starts the next step.
async function run(queue, events, { chains, length, atATime }) {
  let begun = 0;
  let ended = 0;
  const send = (done) => queue.add("echo", { done, body }, { removeOnComplete: true, removeOnFail: true });
  const start = process.hrtime.bigint();
  await new Promise((resolve, reject) => {
    const begin = () => {
      begun += 1;
      send(1).catch(reject);
    };
    const next = ({ returnvalue }) => {
      if (returnvalue.done < length) {
        send(returnvalue.done + 1).catch(reject);
        return;
      }
      ended += 1;
      if (begun < chains) begin();
      else if (ended === chains) resolve();
    };
    events.removeAllListeners("completed");
    events.on("completed", next);
    events.on("failed", ({ failedReason }) => reject(new Error(failedReason)));
    while (begun < atATime && begun < chains) begin();
  });
  return Number(process.hrtime.bigint() - start) / 1e3 / (chains * length);
}

if (what === "worker") {
  const worker = new Worker("echo", async (job) => job.data, { connection, concurrency: 64 });
  await worker.waitUntilReady();
  process.stdout.write("ready\n");
} else {
  const shape = SHAPES[what];
  const worker = spawn(process.execPath, [fileURLToPath(import.meta.url), port, "worker"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await new Promise((resolve) => worker.stdout.once("data", resolve));
  const queue = new Queue("echo", { connection });
  const events = new QueueEvents("echo", { connection });
  await Promise.all([queue.waitUntilReady(), events.waitUntilReady()]);
  await run(queue, events, { ...shape, chains: Math.ceil(shape.chains / 10) });
  process.stdout.write(`${(await run(queue, events, shape)).toFixed(1)}\n`);
  worker.kill("SIGKILL");
  process.exit(0);
}
