import { once } from 'node:events';
import { createServer } from 'node:http';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { startEnvoy } from '@tollgate/testkit/envoy';
import t, { type Test } from 'tap';
import { envoyConfig, getExample, getRouteExample } from './support/envoy-config.ts';
import { startApp } from './support/start-app.ts';

const cost = 4_500;

/** Rules by the name of their algorithm; the first is that of docs/limits.md. */
const limits: Readonly<Record<string, string>> = {
  example: getExample('# Rules for usage.'),
  fixed_window: 'algorithm: fixed_window',
  'fixed_window with charge: always': 'algorithm: fixed_window, charge: always',
  sliding_window: 'algorithm: sliding_window, charge: always',
  token_bucket: 'algorithm: token_bucket, charge: always',
};

const rule = (options: string): string =>
  options.startsWith('#')
    ? options
    : `
- key: tokens
  value: chat
  descriptors:
    - key: user
      rate_limit: { unit: hour, requests_per_unit: 10000, ${options} }
`;

const domainOf = (options: string, atomic: boolean): string =>
  `domain: demo\natomic: ${atomic}\ndescriptors:\n${rule(options).replaceAll(/^/gm, '  ')}`;

/** The number in the metadata that the example reads, from a header of the upstream. */
const headerToMetadata = {
  name: 'envoy.filters.http.header_to_metadata',
  typed_config: {
    '@type': 'type.googleapis.com/envoy.extensions.filters.http.header_to_metadata.v3.Config',
    response_rules: [
      {
        header: 'x-llm-tokens',
        on_header_present: { metadata_namespace: 'llm', key: 'tokens', type: 'NUMBER' },
      },
    ],
  },
};

async function startModel(t: Test): Promise<number> {
  const server = createServer((_request, response) => {
    response.setHeader('x-llm-tokens', String(cost)).end('answer');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close().closeAllConnections());
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('a TCP server without a port');
  return address.port;
}

/** Noon: no hour begins during a test. */
const nowMs = () => Date.UTC(2026, 0, 2, 12);

for (const [name, options] of Object.entries(limits)) {
  for (const atomic of [false, true]) {
    // The hits of refused requests are not counted there.
    if (atomic && name === 'fixed_window') continue;
    t.test(`${name}, atomic ${atomic}: Envoy reports usage until requests are refused`, async (t) => {
      const { ports, stats } = await startApp(t, {
        rules: { 'demo.yaml': domainOf(options, atomic) },
        nowMs,
      });
      const config = envoyConfig({
        grpcPort: ports.grpc,
        upstreamPort: await startModel(t),
        perRoute: getRouteExample('# Envoy, usage of a route.'),
        filters: [headerToMetadata],
      });
      const envoy = await startEnvoy({ config });
      t.teardown(envoy.stop);
      const countReported = () => [...stats.rules()].reduce((sum, series) => sum + series.totalHits, 0);
      const statuses: number[] = [];
      let reported = 0;
      for (let i = 0; i < 8; i += 1) {
        const response = await fetch(`http://127.0.0.1:${envoy.port}`, { headers: { 'x-user-id': 'a' } });
        await response.text();
        statuses.push(response.status);
        if (response.status !== 200) continue;
        reported += cost;
        await awaitUntil(() => countReported() === reported, { what: `a report, ${reported} hits in all` });
      }
      t.same(statuses, [200, 200, 200, 429, 429, 429, 429, 429]);
      const other = await fetch(`http://127.0.0.1:${envoy.port}`, { headers: { 'x-user-id': 'b' } });
      t.equal(other.status, 200, 'another user');
    });
  }
}
