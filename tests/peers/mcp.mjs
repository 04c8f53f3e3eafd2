// A server of the 2026-07-28 revision, made with @modelcontextprotocol/server: over stdio, or over HTTP on 127.0.0.1.
// usage: node mcp.mjs ROOT stdio|http       ROOT: where node_modules is. http prints its port first.
import http from 'node:http';
import {pathToFileURL} from 'node:url';

const [root, how] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(`${root}/node_modules/${name}`));
const {McpServer, createMcpHandler, inputRequired} = await load('@modelcontextprotocol/server/dist/index.mjs');
const {serveStdio} = await load('@modelcontextprotocol/server/dist/stdio.mjs');
const {z} = await load('zod/index.js');

const factory = () => {
    const server = new McpServer({name: 'peer', version: '1.0.0'});
    server.registerTool('add', {description: 'Adds two numbers.', inputSchema: z.object({a: z.number(), b: z.number()}), annotations: {readOnlyHint: true}},
        async ({a, b}) => ({content: [{type: 'text', text: String(a + b)}], structuredContent: {sum: a + b}}));
    server.registerTool('login', {description: 'Asks who is there.', inputSchema: z.object({greeting: z.string()})},
        async ({greeting}, ctx) => {
            const answer = ctx.mcpReq.inputResponses?.who;
            if (answer?.action !== 'accept') {
                return inputRequired({requestState: 'state-of-login', inputRequests: {who: inputRequired.elicit({message: 'Who are you?',
                    requestedSchema: {type: 'object', properties: {name: {type: 'string'}}, required: ['name']}})}});
            }
            return {content: [{type: 'text', text: `${greeting}, ${answer.content.name}`}]};
        });
    server.registerResource('note', 'note://one', {mimeType: 'text/plain'}, async (uri) => ({contents: [{uri: uri.href, text: 'the note'}]}));
    return server;
};

if (how === 'stdio') {
    serveStdio(factory, {legacy: 'reject'});
} else {
    const handler = createMcpHandler(factory, {legacy: 'reject'});
    const server = http.createServer(async (req, res) => {
        const chunks = [];
        for await (const chunk of req) chunks.push(chunk);
        const answer = await handler.fetch(new Request(`http://127.0.0.1${req.url}`, {method: req.method, headers: req.headers,
            body: chunks.length ? Buffer.concat(chunks) : undefined}));
        res.writeHead(answer.status, Object.fromEntries(answer.headers));
        if (answer.body) for await (const chunk of answer.body) res.write(chunk);
        res.end();
    }).listen(0, '127.0.0.1', () => console.log(server.address().port));
    process.stdin.on('end', () => process.exit(0)).resume();
}
