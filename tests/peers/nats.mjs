// A reader of JetStream with nats.js, as a program of its users is: node nats.mjs URL STREAM LAST [MOST]
// Prints {sequence, seq, deleted, body} of each message until the event LAST has come; acknowledges each, so that another run with
// the same durable name goes on behind it. After MOST messages it ends.
import { createRequire } from "node:module";
import path from "node:path";
const require = createRequire(path.join(process.env.BATON_PEERS, "node_modules", "x"));
const { connect, AckPolicy } = require("nats");

const [url, stream, last, most] = process.argv.slice(2);
const nc = await connect({ servers: url, maxReconnectAttempts: -1, reconnectTimeWait: 100 });
const jsm = await nc.jetstreamManager();
await jsm.consumers.add(stream, { durable_name: "reader", ack_policy: AckPolicy.Explicit });
const consumer = await nc.jetstream().consumers.get(stream, "reader");
let n = 0;
for (;;) {
    const m = await consumer.next({ expires: 10000 }); // one at a time: what was fetched and not acknowledged would come again later
    if (m === null) {
        continue;
    }
    console.log(JSON.stringify({ sequence: m.seq, seq: Number(m.headers.get("Baton-Seq")), deleted: m.headers.get("Baton-Deleted"), body: m.string() }));
    await m.ackAck();
    n++;
    if (m.json().seq >= Number(last) || n === Number(most)) {
        break;
    }
}
await nc.close();
