// Requests to the gateway. What proves the person is a cookie that scripts cannot read, and this page's half of its key.

const KEY = 'baton.page';
let half = localStorage.getItem(KEY);

export const me = { credential: '', role: '', info: null };
export const changed = new EventTarget(); // 'login', 'logout', 'offline', 'online'

export class ApiError extends Error {
    constructor(status, p) {
        super(p.detail || p.title || 'HTTP ' + status);
        Object.assign(this, { status, title: p.title, code: p.code, field: p.field, retryable: p.retryable, details: p.details });
    }
}

const ROLES = { observer: 1, submitter: 2, reviewer: 3, admin: 4 };

/** Whether the role of the person is enough; the daemon decides in the end. */
export const may = (role) => (ROLES[me.role] ?? 0) >= ROLES[role];
/** Whether it is theirs to change. */
export const owns = (thing) => me.role === 'admin' || (may('submitter') && thing?.owner === me.credential);

export function path(...parts) {
    return '/v1/' + parts.map(encodeURIComponent).join('/');
}

function query(fields) {
    const q = new URLSearchParams();
    for (const [name, value] of Object.entries(fields ?? {})) {
        if (value !== undefined && value !== null && value !== '') {
            q.append(name, value);
        }
    }
    const text = q.toString();
    return text ? '?' + text : '';
}

export function headers(more) {
    return { ...(half ? { 'X-Baton-Page': half } : {}), ...more };
}

async function problemOf(answer) {
    let p = {};
    try {
        p = await answer.json();
    } catch {
        p = { title: answer.statusText, detail: `the gateway answered ${answer.status}` };
    }
    return new ApiError(answer.status, p);
}

export function lost() {
    half = null;
    localStorage.removeItem(KEY);
    me.role = '';
    changed.dispatchEvent(new Event('logout'));
}

async function send(method, url, init) {
    let answer;
    try {
        answer = await fetch(url, { method, cache: 'no-store', ...init });
    } catch (e) {
        if (e.name === 'AbortError') {
            throw e;
        }
        changed.dispatchEvent(new Event('offline'));
        throw new ApiError(0, { title: 'No connection', detail: 'the gateway cannot be reached', retryable: true });
    }
    if (answer.status === 401 && half && url !== '/ui/session') {
        const e = await problemOf(answer);
        lost();
        throw e;
    }
    if (!answer.ok) {
        throw await problemOf(answer);
    }
    return answer;
}

/** The answer as JSON, or an ApiError. `key`: the request is made once, however often it is sent. */
export async function ask(method, url, { fields, body, key, match, signal, type } = {}) {
    const answer = await send(method, url + query(fields), {
        signal,
        headers: headers({
            ...(body !== undefined ? { 'Content-Type': type ?? 'application/json' } : {}),
            ...(key ? { 'Idempotency-Key': key } : {}),
            ...(match ? { 'If-Match': `"${match}"` } : {}),
            Accept: 'application/json',
        }),
        body: body === undefined ? undefined : type ? body : JSON.stringify(body),
    });
    return answer.status === 204 ? null : answer.json();
}

export const get = (url, fields, more) => ask('GET', url, { fields, ...more });
export const post = (url, body, more) => ask('POST', url, { body: body ?? {}, ...more });

function take(info) {
    Object.assign(me, { credential: info.credential, role: info.role, info });
    changed.dispatchEvent(new Event('login'));
}

/** True: the page was logged in before, and still is. */
export async function resume() {
    if (!half) {
        return false;
    }
    try {
        take(await get('/v1/info'));
        return true;
    } catch (e) {
        if (e.status === 401) {
            return false;
        }
        throw e;
    }
}

export async function logIn(bearer) {
    const answer = await ask('POST', '/ui/session', { body: { bearer } });
    half = answer.page;
    localStorage.setItem(KEY, half);
    take(answer.info);
}

export async function logOut() {
    try {
        await ask('DELETE', '/ui/session');
    } finally {
        lost();
    }
}
