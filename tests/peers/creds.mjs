// An operator, an account with JetStream and a user of NATS, made with @nats-io/jwt: node creds.mjs DIR
// Writes DIR/user.creds, DIR/stranger.creds (another account's, unknown to the server), and prints the server's configuration.
import { createRequire } from "node:module";
import fs from "node:fs";
import path from "node:path";
const require = createRequire(path.join(process.env.BATON_PEERS, "node_modules", "x"));
const { createOperator, createAccount, createUser } = require("@nats-io/nkeys");
const { encodeOperator, encodeAccount, encodeUser, fmtCreds } = require("@nats-io/jwt");

const dir = process.argv[2];
const operator = createOperator();
const limits = { mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1, conn: -1, subs: -1, data: -1, payload: -1, imports: -1, exports: -1, leaf: -1, wildcards: true };
async function make(name) {
    const account = createAccount();
    const user = createUser();
    const accountJwt = await encodeAccount(name, account, { limits }, { signer: operator });
    const userJwt = await encodeUser("bridge", user, account, {});
    const file = path.join(dir, name + ".creds");
    fs.writeFileSync(file, fmtCreds(userJwt, user), { mode: 0o600 });
    return `${account.getPublicKey()}: ${accountJwt}`;
}
const known = await make("user");
await make("stranger");
const system = createAccount();
const systemJwt = await encodeAccount("SYS", system, {}, { signer: operator });
console.log(`operator: ${await encodeOperator("O", operator, { system_account: system.getPublicKey() })}
resolver: MEMORY
resolver_preload: {
  ${known}
  ${system.getPublicKey()}: ${systemJwt}
}
system_account: ${system.getPublicKey()}`);
