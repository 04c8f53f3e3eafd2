// A client of MCP, of either era, over stdio or Streamable HTTP: does what a list of steps says, prints what came.
// usage: node mcp_client.mjs ROOT legacy|modern {"url","bearer"}|{"command","args"} <STEPS       ROOT: where node_modules is
// A step: {"do": "tools"} {"do": "call", "name", "arguments", "cancelOn"} {"do": "resources"} {"do": "read", "uri"} {"do": "answer", "action", "content"}
import {pathToFileURL} from 'node:url';
import fs from 'node:fs';

const [root, era, where] = process.argv.slice(2);
const at = JSON.parse(where);
const load = (name) => import(pathToFileURL(`${root}/node_modules/@modelcontextprotocol/${name}`));
let Client, Http, Stdio, Elicit;
if (era === 'modern') {
    ({Client, StreamableHTTPClientTransport: Http} = await load('client/dist/index.mjs'));
    ({StdioClientTransport: Stdio} = await load('client/dist/stdio.mjs'));
    Elicit = 'elicitation/create';
} else {
    ({Client} = await load('sdk/dist/esm/client/index.js'));
    ({StreamableHTTPClientTransport: Http} = await load('sdk/dist/esm/client/streamableHttp.js'));
    ({StdioClientTransport: Stdio} = await load('sdk/dist/esm/client/stdio.js'));
    ({ElicitRequestSchema: Elicit} = await load('sdk/dist/esm/types.js'));
}
const transport = at.url ? new Http(new URL(at.url), {requestInit: {headers: {Authorization: `Bearer ${at.bearer}`}}})
    : new Stdio({command: at.command, args: at.args, env: process.env, stderr: 'inherit'});
const client = new Client({name: 'peer', version: '1.0.0'}, {capabilities: {elicitation: {}}, ...(era === 'modern' ? {versionNegotiation: {mode: {pin: '2026-07-28'}}} : {})});
let answer = {action: 'cancel'};
const asked = [];
client.setRequestHandler(Elicit, async (request) => {
    asked.push(request.params);
    return answer;
});
const out = [];
try {
    await client.connect(transport);
    out.push({server: client.getServerVersion(), abilities: client.getServerCapabilities()});
    for (const step of JSON.parse(fs.readFileSync(0, 'utf8'))) {
        const progress = [];
        const stop = new AbortController();
        const options = {signal: stop.signal, timeout: 60000, onprogress: (p) => {
            progress.push(p);
            if (step.cancelOn && p.message.includes(step.cancelOn)) stop.abort('enough');
        }};
        try {
            const request = {name: step.name, arguments: step.arguments};
            const r = step.do === 'tools' ? await client.listTools()
                : step.do === 'call' ? await (era === 'modern' ? client.callTool(request, options) : client.callTool(request, undefined, options))
                : step.do === 'resources' ? {...await client.listResources(), ...await client.listResourceTemplates()}
                : step.do === 'read' ? await client.readResource({uri: step.uri})
                : (answer = step, {});
            out.push({result: r, progress, asked: asked.splice(0)});
        } catch (e) {
            out.push({error: String(e.message ?? e), code: e.code, progress, asked: asked.splice(0)});
        }
    }
    await client.close();
} catch (e) {
    out.push({failed: String(e.stack ?? e)});
}
console.log(JSON.stringify(out));
process.exit(0);
