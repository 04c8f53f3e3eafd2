// An agent made with @a2a-js/sdk, over JSON-RPC on 127.0.0.1; prints its port first. What it does stands in the first word.
// usage: node a2a.mjs ROOT 1.0|0.3 streaming|blocking       ROOT: where node_modules is
import {pathToFileURL} from 'node:url';

const [root, version, how] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(`${root}/node_modules/${name}`));
const {Role, TaskState} = await load('@a2a-js/sdk/dist/index.js');
const {AgentEvent, DefaultRequestHandler, InMemoryTaskStore} = await load('@a2a-js/sdk/dist/server/index.js');
const {UserBuilder, agentCardHandler, jsonRpcHandler} = await load('@a2a-js/sdk/dist/server/express/index.js');
const express = (await load('express/index.js')).default;

const part = ($case, value, more = {}) => ({content: {$case, value}, metadata: undefined, filename: '', mediaType: '', ...more});
const seen = {messages: [], cancelled: []};

class Executor {
    waiting = new Map();

    cancelTask = async (taskId) => {
        seen.cancelled.push(taskId);
        this.waiting.get(taskId)?.();
    };

    async execute(context, bus) {
        const {taskId, contextId, userMessage, task} = context;
        const text = userMessage.parts.map((p) => (p.content.$case === 'text' ? p.content.value : '')).join('');
        const data = userMessage.parts.find((p) => p.content.$case === 'data')?.content.value;
        const [word, ...rest] = text.split(' ');
        const message = (says) => ({role: Role.ROLE_AGENT, messageId: crypto.randomUUID(), parts: [part('text', says)], taskId, contextId,
            extensions: [], metadata: {}, referenceTaskIds: []});
        const status = (state, says) => bus.publish(AgentEvent.statusUpdate({taskId, contextId, metadata: {},
            status: {state: TaskState[`TASK_STATE_${state}`], message: says && message(says), timestamp: new Date().toISOString()}}));
        const artifact = (artifactId, parts, more = {}) => bus.publish(AgentEvent.artifactUpdate({taskId, contextId, metadata: {}, append: false,
            lastChunk: true, artifact: {artifactId, name: artifactId, description: '', parts, metadata: {}, extensions: []}, ...more}));
        seen.messages.push({id: userMessage.messageId, text, taskId, contextId, skill: userMessage.metadata?.skillId});
        if (word === 'message') {
            bus.publish(AgentEvent.message(message('a plain answer')));
            return bus.finished();
        }
        bus.publish(AgentEvent.task(task ?? {id: taskId, contextId, artifacts: [], history: [userMessage], metadata: {},
            status: {state: TaskState.TASK_STATE_SUBMITTED, timestamp: new Date().toISOString(), message: undefined}}));
        if (task) {
            artifact('answer', [part('text', `You chose ${text}`)]);
            status('COMPLETED');
            return bus.finished();
        }
        status('WORKING', 'thinking');
        if (word === 'echo') {
            artifact('answer', [part('text', rest.join(' '))], {lastChunk: false});
            artifact('answer', [part('text', ', again')], {append: true});
            if (data !== undefined) artifact('data', [part('data', {got: data})]);
            status('COMPLETED');
        } else if (word === 'file') {
            artifact('files', [part('raw', Buffer.from('a,b\n1,2\n'), {filename: 'table one.csv', mediaType: 'text/csv'}),
                part('url', 'https://example.com/x.pdf', {filename: 'x.pdf', mediaType: 'application/pdf'})]);
            status('COMPLETED', 'two files');
        } else if (word === 'ask') {
            status('INPUT_REQUIRED', 'Which colour?');
        } else if (word === 'slow') {
            await new Promise((resolve) => this.waiting.set(taskId, resolve));
            status('CANCELED');
        } else {
            status({auth: 'AUTH_REQUIRED', reject: 'REJECTED'}[word] ?? 'FAILED', rest.join(' '));
        }
        bus.finished();
    }
}

const app = express();
const server = app.listen(0, '127.0.0.1', () => {
    const {port} = server.address();
    const card = {name: 'Peer', description: 'An agent for tests.', version: '1.0.0', provider: undefined, documentationUrl: '', signatures: [],
        supportedInterfaces: [{url: 'grpc.example.com', protocolBinding: 'GRPC', tenant: '', protocolVersion: '1.0'},
            {url: `http://127.0.0.1:${port}/rpc`, protocolBinding: 'JSONRPC', tenant: '', protocolVersion: version}],
        capabilities: {streaming: how === 'streaming', pushNotifications: false, extensions: [], extendedAgentCard: false},
        securitySchemes: {}, securityRequirements: [], defaultInputModes: ['text/plain'], defaultOutputModes: ['text/plain'],
        skills: [{id: 'do it', name: 'Do it', description: 'Does what the first word says.', tags: ['test'], examples: ['echo hello'], inputModes: [],
            outputModes: [], securityRequirements: []}]};
    const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Executor());
    const legacyCompat = {enabled: version === '0.3'};
    app.get('/seen', (req, res) => res.json(seen));
    app.use('/.well-known/agent-card.json', agentCardHandler({agentCardProvider: requestHandler, legacyCompat}));
    app.use('/rpc', jsonRpcHandler({requestHandler, userBuilder: UserBuilder.noAuthentication, legacyCompat}));
    console.log(port);
});
process.stdin.on('end', () => process.exit(0)).resume();
