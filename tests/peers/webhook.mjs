// A receiver of webhooks: each request is verified by standardwebhooks and read by cloudevents; what came is a line of a file.
// usage: BATON_READY_FD=N node webhook.mjs ROOT OUT SECRET...       ROOT: where node_modules is; each SECRET verifies by itself
import fs from 'node:fs';
import http from 'node:http';
import {createRequire} from 'node:module';

const [root, out, ...secrets] = process.argv.slice(2);
const load = createRequire(`${root}/`);
const {Webhook} = load('standardwebhooks');
const {HTTP} = load('cloudevents');

const server = http.createServer((request, response) => {
    const parts = [];
    request.on('data', (part) => parts.push(part));
    request.on('end', () => {
        const body = Buffer.concat(parts).toString();
        const line = {path: request.url, headers: request.headers, body, verified: 0};
        for (const secret of secrets) {
            try {
                new Webhook(secret).verify(body, request.headers);
                line.verified++;
            } catch (error) {
                line.refused = String(error);
            }
        }
        if ((request.headers['content-type'] ?? '').startsWith('application/cloudevents')) {
            try {
                const event = HTTP.toEvent({headers: request.headers, body});
                event.validate();
                line.event = event.toJSON();
            } catch (error) {
                line.invalid = String(error);
            }
        }
        fs.appendFileSync(out, JSON.stringify(line) + '\n');
        response.writeHead(line.verified === secrets.length ? 204 : 401).end();
    });
});
server.listen(0, '127.0.0.1', () => fs.writeSync(Number(process.env.BATON_READY_FD), `${server.address().port}\n`));
process.stdin.resume().on('end', () => process.exit(0));
