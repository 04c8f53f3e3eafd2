// The dashboard's stream of events without a browser: prints "again" when all is to be read again, and each event as a line of
// JSON. Arguments: the folder of a copy of events.js, beside which this program puts an api.js of its own; URL; token; first number.
import { writeFileSync } from 'node:fs';

const [dir, url, token, from] = process.argv.slice(2);
writeFileSync(`${dir}/package.json`, '{"type":"module"}');
writeFileSync(`${dir}/api.js`, `
export const changed = new EventTarget();
export const headers = (more) => ({ Authorization: 'Bearer ${token}', ...more });
export const get = async (path) => (await fetch(path, { headers: headers() })).json();
export const lost = () => process.exit(3);
`);
const plain = globalThis.fetch;
globalThis.fetch = (path, options) => plain(url + path, options);
globalThis.document = { hidden: false, addEventListener() {} };
globalThis.requestAnimationFrame = (on) => setTimeout(on, 5);

const events = await import(`${dir}/events.js`);
events.listen((list) => {
    for (const event of list ?? ['again']) {
        console.log(JSON.stringify(event));
    }
});
events.start(Number(from));
