// A client of A2A made with @a2a-js/sdk, by version 1.0 or 0.3: does what a list of steps says, prints what came.
// usage: node a2a_client.mjs ROOT 1.0|0.3 URL BEARER [HTTP+JSON] <STEPS       ROOT: where node_modules is
// A step: {"do": "send"|"stream", "text", "data", "task", "context", "now"} {"do": "get"|"cancel"|"follow", "task"} {"do": "list", ...its params}
//   {"do": "push", "op": "create"|"get"|"list"|"delete", "task", "config": {"id", "url", "token", ...}}; "push" of a message: a configuration; task and contextId "LAST": of the step before
import {pathToFileURL} from 'node:url';
import fs from 'node:fs';

const [root, version, url, bearer, binding = 'JSONRPC'] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(`${root}/node_modules/@a2a-js/sdk/dist/${name}`));
const {Role, TaskState} = await load('index.js');
const {ClientFactory, JsonRpcTransportFactory, RestTransportFactory, DefaultAgentCardResolver} = await load('client/index.js');
const fetchImpl = (to, init = {}) => fetch(to, {...init, headers: {...Object.fromEntries(new Headers(init.headers)), Authorization: `Bearer ${bearer}`}});
const card = await new DefaultAgentCardResolver().resolve(url); // without a credential: the card is for everybody
card.supportedInterfaces = card.supportedInterfaces.filter((i) => i.protocolVersion === version && i.protocolBinding === binding);
const how = {fetchImpl, legacyCompat: {enabled: true}};
const client = await new ClientFactory({transports: [new (binding === 'JSONRPC' ? JsonRpcTransportFactory : RestTransportFactory)(how)]}).createFromAgentCard(card);

const part = ($case, value) => ({content: {$case, value}, metadata: undefined, filename: '', mediaType: ''});
const text = (parts) => (parts ?? []).map((p) => p.content.value).join('');
const plain = (e) => {
    const x = e?.payload?.value ?? e;
    const status = x.status && {state: TaskState[x.status.state].replace('TASK_STATE_', '').toLowerCase(), says: text(x.status.message?.parts)};
    return {task: x.taskId ?? x.id, context: x.contextId, ...(status ?? {}), kind: e?.payload?.$case ?? 'task',
        text: x.artifact ? text(x.artifact.parts) : (x.artifacts ?? []).map((a) => text(a.parts)).join('')};
};
let last = '';
const out = [{card: {name: card.name, skills: card.skills.map((s) => s.id), version: client.protocolVersion}}];
for (const step of JSON.parse(fs.readFileSync(0, 'utf8'))) {
    const id = step.task === 'LAST' ? last : step.task;
    const message = {messageId: step.id ?? crypto.randomUUID(), role: Role.ROLE_USER, contextId: step.context ?? '', taskId: id ?? '', metadata: undefined, extensions: [],
        referenceTaskIds: [], parts: [...(step.text ? [part('text', step.text)] : []), ...(step.data ? [part('data', step.data)] : [])]};
    const request = {tenant: '', message, metadata: {}, configuration: {acceptedOutputModes: [], returnImmediately: step.now ?? false, taskPushNotificationConfig: step.push && {tenant: '', taskId: '', authentication: undefined, ...step.push}}};
    const events = [];
    try {
        if (step.do === 'list') {
            const {do: _, ...params} = step;
            const page = await client.listTasks({tenant: '', status: 0, ...params, status: TaskState[params.status] ?? 0, ...(params.contextId === 'LAST' ? {contextId: last} : {})});
            out.push({events: page.tasks.map(plain), next: page.nextPageToken, size: page.pageSize});
            continue;
        }
        if (step.do === 'push') {
            const op = `${step.op}TaskPushNotificationConfig`;
            const answer = await client[op]({tenant: '', taskId: id, id: '', url: '', token: '', authentication: undefined, pageSize: 0, pageToken: '', ...step.config});
            out.push({configs: answer?.configs ?? [answer ?? null]});
            continue;
        }
        if (step.do === 'stream' || step.do === 'follow') {
            for await (const e of step.do === 'stream' ? client.sendMessageStream(request) : client.resubscribeTask({tenant: '', id})) events.push(plain(e));
        } else {
            events.push(plain(step.do === 'send' ? await client.sendMessage(request)
                : step.do === 'get' ? await client.getTask({tenant: '', id}) : await client.cancelTask({tenant: '', id, metadata: {}})));
        }
        last = events[0]?.task ?? last;
        out.push({events});
    } catch (e) {
        out.push({error: `${e.name}: ${e.message}`, events});
    }
}
console.log(JSON.stringify(out));
process.exit(0);
