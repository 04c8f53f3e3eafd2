// A key of a user of NATS, made with @nats-io/nkeys: prints its seed and its public half.
import { createRequire } from "node:module";
import path from "node:path";
const require = createRequire(path.join(process.env.BATON_PEERS, "node_modules", "x"));
const user = require("@nats-io/nkeys").createUser();
console.log(new TextDecoder().decode(user.getSeed()), user.getPublicKey());
