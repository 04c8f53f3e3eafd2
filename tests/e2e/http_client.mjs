// The main job with a client that openapi-client-axios (npm) makes of the gateway's own document, and what a linter says of it.
// usage: node http_client.mjs URL TOKEN NODE_MODULES
import { createRequire } from 'node:module';

const [url, token, modules] = process.argv.slice(2);
const require = createRequire(modules + '/');
const { OpenAPIClientAxios } = require('openapi-client-axios');
const { lintFromString, createConfig } = require('@redocly/openapi-core');

const source = await (await fetch(url + '/v1/openapi.json')).text();
const config = await createConfig({ extends: ['recommended-strict'] });
for (const p of await lintFromString({ source, absoluteRef: 'openapi.json', config })) {
    throw new Error(`${p.ruleId}: ${p.message} at ${p.location?.[0]?.pointer}`);
}

const api = new OpenAPIClientAxios({ definition: JSON.parse(source), axiosConfigDefaults: {
    paramsSerializer: { indexes: null }, baseURL: url, headers: { Authorization: 'Bearer ' + token } } });
const client = await api.init();

function same(got, expected) {
    if (JSON.stringify(got) !== JSON.stringify(expected)) {
        throw new Error(`${JSON.stringify(got)}, expected ${JSON.stringify(expected)}`);
    }
}
async function refused(promise) {
    try {
        await promise;
    } catch (e) {
        return [e.response.status, e.response.data.code, e.response.data.field];
    }
    throw new Error('it was not refused');
}

const plan = { steps: [{ stepId: 'a', agentId: 'calc', skill: 'evaluate', task: 'Add one and two', parameters: { expression: '1+2' } }] };
const made = await client.planSubmit({ 'Idempotency-Key': 'main-job' }, { plan });
same([made.status, made.headers.location], [201, '/v1/plans/' + made.data.planId]);
const planId = made.data.planId;
let view;
do {
    view = (await client.planGet({ planId, steps: false })).data;
} while (view.status !== 'completed' && view.status !== 'failed');
same([view.status, view.outcome], ['completed', 'success']);
same((await client.planResult({ planId, stepId: 'a' })).data.result.text, '3');
same((await client.planList({ limit: 1 })).data.plans.map((p) => p.planId), [planId]);
const page = (await client.eventsReadOfPlan({ planId, type: ['plan_completed'] }, null, { headers: { Accept: 'application/json' } })).data;
same(page.events.map((e) => e.type), ['plan_completed']);
same(await refused(client.planGet({ planId: '01A20FC9-DD1B-70C5-9698-077211201167' })), [404, 'NOT_FOUND', undefined]);
same(await refused(client.planCancel({ planId }, { why: 'x' })), [400, 'INVALID', 'why']);
console.log('all is well');
