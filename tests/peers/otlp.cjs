// Spans as OTLP/HTTP sends them in JSON, checked against what @opentelemetry/otlp-transformer writes for the same spans; prints them
// with plain attributes.
// usage: node otlp.cjs ROOT <REQUESTS       ROOT: where node_modules is; REQUESTS: a JSON list of ExportTraceServiceRequest
const {createRequire} = require('module');
const assert = require('assert');
const {JsonTraceSerializer} = createRequire(process.argv[2] + '/')('@opentelemetry/otlp-transformer');

const plain = list => Object.fromEntries(list.map(({key, value}) => [key, value.stringValue ?? value.intValue ?? value.boolValue ?? value.doubleValue]));
const time = nanos => [Number(BigInt(nanos) / 1000000000n), Number(BigInt(nanos) % 1000000000n)];
const context = (traceId, spanId) => ({traceId, spanId, traceFlags: 1});
const out = [];

for (const request of JSON.parse(require('fs').readFileSync(0, 'utf8'))) {
    for (const {resource, scopeSpans} of request.resourceSpans) {
        assert.strictEqual(plain(resource.attributes)['service.name'], 'baton');
        for (const {scope, spans} of scopeSpans) {
            for (const span of spans) {
                const attributes = plain(span.attributes);
                const readable = {
                    name: span.name, kind: span.kind - 1, spanContext: () => context(span.traceId, span.spanId),
                    parentSpanContext: span.parentSpanId && context(span.traceId, span.parentSpanId),
                    startTime: time(span.startTimeUnixNano), endTime: time(span.endTimeUnixNano), status: span.status, attributes,
                    links: (span.links ?? []).map(l => ({context: context(l.traceId, l.spanId), attributes: {}})), events: [],
                    resource: {attributes: plain(resource.attributes)}, instrumentationScope: scope,
                    droppedAttributesCount: 0, droppedEventsCount: 0, droppedLinksCount: 0,
                };
                const theirs = JSON.parse(Buffer.from(JsonTraceSerializer.serializeRequest([readable])).toString()).resourceSpans[0].scopeSpans[0].spans[0];
                for (const [name, value] of Object.entries(span)) {
                    if (name !== 'links') {
                        assert.deepStrictEqual(theirs[name], value, name);
                    }
                }
                for (const [i, link] of (span.links ?? []).entries()) {
                    assert.deepStrictEqual([theirs.links[i].traceId, theirs.links[i].spanId], [link.traceId, link.spanId]);
                }
                out.push({...span, attributes});
            }
        }
    }
}
process.stdout.write(JSON.stringify(out));
