import { once } from 'node:events';
import { createServer } from 'node:http';
import { createMetricsExport } from '@tollgate/kit/metrics-export';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { Counter, Registry } from 'prom-client';
import t from 'tap';
import { recordingLogger } from './helpers/recording-logger.ts';

t.test('metrics are sent again and again; an outage is logged once, and its end', async (t) => {
  const bodies: string[] = [];
  let status = 400;
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += String(chunk);
    bodies.push(body);
    response.writeHead(status).end('{}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  process.env.OTEL_EXPORTER_OTLP_ENDPOINT = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
  t.teardown(() => {
    delete process.env.OTEL_EXPORTER_OTLP_ENDPOINT;
    server.close();
    server.closeAllConnections();
  });

  const registry = new Registry();
  const asked = new Counter({ name: 'asked', help: 'Asked.', registers: [registry] });
  const { logger, lines } = recordingLogger();
  const metrics = createMetricsExport({
    registry,
    protocol: 'http',
    serviceName: 'test',
    everyMs: 20,
    nowMs: Date.now,
    logger,
  });
  const context = { signal: new AbortController().signal };
  await metrics.start?.(context);
  await awaitUntil(() => bodies.length >= 2, { what: 'a second export' });
  status = 200;
  await awaitUntil(() => JSON.stringify(lines).includes('exported again'), { what: 'the end of the outage' });
  asked.inc(42);
  await metrics.stop?.(context);
  t.ok(bodies.some((body) => /"name":"asked".*"asDouble":42/s.test(body)));
  t.equal(JSON.stringify(lines).split('metrics not exported').length, 2);
});
