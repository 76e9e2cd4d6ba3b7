import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type BenchOptions, median, type Report, type Table } from '../report.ts';
import { bundleRequests, bundleSize } from './bundle-size.ts';
import { type CandidateList, candidateLists, type Measurement } from './candidates.ts';

const program = fileURLToPath(new URL('./candidates.ts', import.meta.url));

/** client-sdk beside bare fetch and its peers, each in a process of its own. */
export async function benchClient(options: BenchOptions): Promise<Report> {
  const server = await startTokenServer();
  try {
    const run = (list: CandidateList, concurrency: number) =>
      compare(list, { concurrency, origin: server.origin, ...options });
    const tokens = await run('tokens', 16);
    const requests = await run('requests', 1);
    const withoutNetwork = await run('requestsWithoutNetwork', 1);
    return {
      page: 'benchmarks-client-sdk.md',
      title: 'Benchmarks of the OAuth 2.0 client',
      intro:
        'Written by `make bench-client ARGS=--write` (hack/bench); do not edit by hand. Measured by mitata in turns in one run, each library in a\nprocess of its own, as in an application.',
      sharedBy: 'the client and its server',
      programs: [],
      tables: [
        comparisonTable('Token requests (client credentials, 16 in flight)', tokens),
        comparisonTable('Authorized requests (one at a time, body read)', requests),
        comparisonTable('Authorized requests without network (the library alone)', withoutNetwork),
        await bundleTable(),
      ],
    };
  } finally {
    await server.close();
  }
}

/** Every round has all candidates, so that a busy moment of the machine affects all of them. */
async function compare(
  list: CandidateList,
  { concurrency, origin, quick, progress }: BenchOptions & { concurrency: number; origin: string },
): Promise<Measurement[][]> {
  const results = candidateLists[list](origin).map((): Measurement[] => []);
  const rounds = quick ? 1 : 5;
  for (let round = 1; round <= rounds; round++) {
    progress(`${list}: round ${round} of ${rounds}`);
    for (const [index, measured] of results.entries()) {
      const args = [program, list, index, origin, concurrency, quick ? 200 : 1500].map(String);
      const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 120_000 });
      // Our own program.
      measured.push(JSON.parse(stdout) as Measurement);
    }
  }
  return results;
}

function comparisonTable(title: string, results: readonly Measurement[][]): Table {
  const [bare = []] = results;
  const micros = (measured: readonly Measurement[]) =>
    1e6 / median(measured.map((one) => one.callsPerSecond));
  return {
    title,
    head: ['library', 'calls/s', 'CPU µs each', '× fetch', 'µs each', 'µs over fetch'],
    rows: results.map((measured) => [
      measured[0]?.name ?? '',
      median(measured.map(({ callsPerSecond }) => callsPerSecond)).toFixed(0),
      median(measured.map(({ cpuMicros }) => cpuMicros)).toFixed(1),
      median(
        measured.map(
          ({ callsPerSecond }, round) => callsPerSecond / (bare[round]?.callsPerSecond ?? Number.NaN),
        ),
      ).toFixed(2),
      micros(measured).toFixed(1),
      (micros(measured) - micros(bare)).toFixed(1),
    ]),
  };
}

async function bundleTable(): Promise<Table> {
  const bundles = await Promise.all(bundleRequests.map(bundleSize));
  const kilobytes = (bytes: number) => (bytes / 1000).toFixed(1);
  return {
    title: 'Size of one bundled file (esbuild, minified, no code splitting)',
    head: ['library', 'minified kB', 'gzip kB'],
    rows: bundles.map(({ name, minifiedBytes, gzippedBytes }) => [
      name,
      ...[minifiedBytes, gzippedBytes].map(kilobytes),
    ]),
  };
}

/** Answers token requests with a new token, and every other request with a small document. */
async function startTokenServer(): Promise<{ origin: string; close(): Promise<void> }> {
  let issued = 0;
  const resource = JSON.stringify({ id: 7, name: 'a resource of the usual size', tags: ['a', 'b', 'c'] });
  const server = createServer((request, response) => {
    request.resume().once('end', () => {
      const body =
        request.url === '/oauth/token'
          ? JSON.stringify({ access_token: `token-${issued++}`, token_type: 'Bearer', expires_in: 3600 })
          : resource;
      response.writeHead(200, {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        'cache-control': 'no-store',
      });
      response.end(body);
    });
  });
  server.keepAliveTimeout = 120_000;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  // A listening TCP server has such an address.
  const { port } = server.address() as AddressInfo;
  return {
    origin: `http://127.0.0.1:${port}`,
    close: async () => {
      server.close().closeAllConnections();
      await once(server, 'close');
    },
  };
}
