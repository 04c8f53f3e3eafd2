// One stream of events for the whole page. It resumes after the last event that came, so nothing is lost and nothing comes
// twice; a page that nobody looks at gives its connection back, because browsers have only six for a server.

import { changed, get, headers, lost } from './api.js';

const BEHIND = 5000; // with more events than this to catch up with, everything is read again instead
const HIDDEN_MS = 10000;
const listeners = new Set();

export const state = { last: 0, live: false, received: 0 };

let stop = null; // of the connection
let place = ''; // where the stream goes on: the id of the last event; '' = from now on, and everything is read again
let waiting = [];
let scheduled = false;
let running = false;

/** Calls on(events) with a list of events, in their order, at most once a frame; on(null): read everything again. */
export function listen(on) {
    listeners.add(on);
    return () => listeners.delete(on);
}

function flush() {
    scheduled = false;
    const events = waiting;
    waiting = [];
    for (const on of listeners) {
        on(events);
    }
}

function take(event) {
    state.last = event.seq;
    state.received++;
    waiting.push(event);
    if (!scheduled) {
        scheduled = true;
        if (document.hidden) {
            setTimeout(flush, 100);
        } else {
            requestAnimationFrame(flush);
        }
    }
}

function again() {
    waiting = [];
    for (const on of listeners) {
        on(null);
    }
}

function set(live) {
    if (state.live !== live) {
        state.live = live;
        changed.dispatchEvent(new Event(live ? 'online' : 'offline'));
    }
}

async function read(answer) {
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '';
    for (;;) {
        const { value, done } = await reader.read();
        if (done) {
            return;
        }
        const text = rest + value;
        const end = text.lastIndexOf('\n\n');
        rest = end < 0 ? text : text.slice(end + 2);
        for (const block of end < 0 ? [] : text.slice(0, end).split('\n\n')) {
            const data = block.split('\n').filter((l) => l.startsWith('data: ')).map((l) => l.slice(6)).join('\n');
            if (data) {
                const event = JSON.parse(data);
                if (event.type === 'history_changed') { // what came after event.fromSeq was lost
                    forget();
                    return;
                }
                if (event.shard !== undefined || event.seq > state.last) { // a number is one of its shard
                    take(event);
                }
            }
            place = block.match(/^id: (.*)$/m)?.[1] ?? place;
        }
    }
}

function forget() {
    place = '';
    state.last = 0;
}

/** Forgets where it was when that is too far behind, or of another journal. */
async function catchUp() {
    const { lastSeq = 0 } = await get('/v1/info');
    if (!place.startsWith('S') && (lastSeq - state.last > BEHIND || lastSeq < state.last)) { // a vector has numbers of shards
        forget();
    }
}

function open() {
    return fetch('/v1/events' + (place ? '?after=' + encodeURIComponent(place) : ''), {
        signal: stop.signal,
        cache: 'no-store',
        headers: headers({ Accept: 'text/event-stream' }),
    });
}

async function connect() {
    stop = new AbortController();
    await catchUp();
    let answer = await open();
    if (answer.status === 400 || answer.status === 409) { // a fleet of several shards wants a vector; history has changed
        forget();
        answer = await open();
    }
    if (answer.status === 401) {
        lost();
        return;
    }
    if (!answer.ok) {
        throw new Error('HTTP ' + answer.status);
    }
    if (!place) {
        again();
    }
    set(true);
    await read(answer);
}

const pause = (n) => new Promise((go) => {
    setTimeout(go, n);
});

async function loop() {
    let wait = 200;
    while (running) {
        try {
            await connect();
            wait = 200;
        } catch (e) {
            if (e.status === 401) {
                return;
            }
        }
        if (!running) {
            return;
        }
        set(false);
        await pause(wait * (0.75 + Math.random() / 2));
        wait = Math.min(wait * 2, 3000);
    }
}

export function start(from) {
    if (!running) {
        running = true;
        state.last = from;
        place = String(from);
        loop();
    }
}

export function end() {
    running = false;
    stop?.abort();
    waiting = [];
}

let hideTimer = 0;
let sleeps = false;
document.addEventListener('visibilitychange', () => {
    clearTimeout(hideTimer);
    if (document.hidden && running) {
        hideTimer = setTimeout(() => {
            sleeps = true;
            end();
        }, HIDDEN_MS);
    } else if (sleeps) {
        sleeps = false;
        running = true;
        loop();
    }
});
