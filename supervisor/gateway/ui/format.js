// Times, durations and sizes for people.

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false });
const day = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', hour12: false });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'long' });
const counted = new Intl.NumberFormat();

export const ms = (iso) => (iso ? Date.parse(iso) : NaN);

export function duration(n) {
    if (n === undefined || n === null || Number.isNaN(n)) {
        return '';
    }
    if (n < 1000) {
        return Math.max(0, Math.round(n)) + ' ms';
    }
    const sec = n / 1000;
    if (sec < 60) {
        return (sec < 10 ? sec.toFixed(1) : Math.round(sec)) + ' s';
    }
    const min = Math.floor(sec / 60);
    if (min < 60) {
        return `${min} min ${Math.round(sec % 60)} s`;
    }
    const hours = Math.floor(min / 60);
    return hours < 48 ? `${hours} h ${min % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** "12 s ago", or the day for what is older. */
export function ago(iso, now = Date.now()) {
    const t = ms(iso);
    if (Number.isNaN(t)) {
        return '';
    }
    const n = now - t;
    if (n < 0) {
        return 'in ' + duration(-n);
    }
    if (n < 5000) {
        return 'just now';
    }
    return n < 3600e3 * 20 ? (n < 60e3 ? Math.round(n / 1000) + ' s' : n < 3600e3 ? Math.round(n / 60e3) + ' min' : Math.round(n / 3600e3) + ' h') + ' ago'
        : day.format(t);
}

export const at = (iso) => (iso ? clock.format(ms(iso)) : '');
export const fully = (iso) => (iso ? full.format(ms(iso)) : '');
export const number = (n) => counted.format(n ?? 0);

export function bytes(n) {
    return n === undefined ? '' : n < 1024 ? n + ' B' : n < 1048576 ? (n / 1024).toFixed(1) + ' KiB' : (n / 1048576).toFixed(1) + ' MiB';
}

export function money(micros) {
    return micros ? (micros / 1e6).toLocaleString(undefined, { style: 'currency', currency: 'USD', maximumFractionDigits: micros < 1e4 ? 6 : 2 }) : '';
}

export const tokens = (u) => (u?.inputTokens ?? 0) + (u?.outputTokens ?? 0);

/** The end of an id tells ids of one minute apart. */
export const short = (id) => (id && id.length > 12 ? id.slice(0, 8) + '\u2026' + id.slice(-4) : id ?? '');
