/* @copilotkit/aimock on a free port of 127.0.0.1, which is printed; ends with its standard input. What it answers is given by
 * its own control API (/__aimock/fixtures), what it was asked stands in its journal (/__aimock/journal).
 * The CommonJS build: it also runs on Debian's node 18, of which the other one wants a function that is not there.
 * usage: node aimock.cjs '{"apiKeys": ["..."]}'
 */
"use strict";
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

mock.start().then(() => console.log(new URL(mock.url).port));
process.stdin.on("end", () => process.exit(0));
process.stdin.resume();
