/* @copilotkit/aimock on a free port of 127.0.0.1, which is written to the descriptor BATON_READY_FD; ends with its standard
 * input. What it answers is given by its own control API (/__aimock/fixtures), what it was asked stands in its journal
 * (/__aimock/journal).
 * The CommonJS build: it also runs on Debian's node 18, of which the other one wants a function that is not there.
 * usage: node aimock.cjs '{"apiKeys": ["..."]}'
 */
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const { createRequire } = require("node:module");

const load = createRequire(path.join(process.env.BATON_PEERS || __dirname, "x.cjs"));
const { LLMock } = load("@copilotkit/aimock");

const options = JSON.parse(process.argv[2] || "{}");
const mock = new LLMock({
    port: 0,
    host: "127.0.0.1",
    logLevel: "silent",
    ...(options.apiKeys ? { auth: { apiKeys: options.apiKeys } } : {}),
});

mock.start().then(() => fs.writeSync(Number(process.env.BATON_READY_FD || 1), `${new URL(mock.url).port}\n`));
process.stdin.on("end", () => process.exit(0));
process.stdin.resume();
