import { awaitUntil } from '@tollgate/testkit/await-until';
import { measureGrowth, sendIncompleteCalls } from '@tollgate/testkit/incomplete-requests';
import { fetchText, startAuthServer } from '@tollgate/testkit/services';
import { freePort } from '@tollgate/testkit/tcp';
import t, { type Test } from 'tap';
import { checkPath } from '../../src/ext-authz/grpc.ts';
import { connectAuthz } from '../helpers/authz-client.ts';
import { testDatabase } from '../helpers/test-database.ts';

const mebibyte = 1024 * 1024;
/** The most that the buffers of all clients together may have. */
const maxBufferBytes = 64 * mebibyte;

/** For 800 MiB and 50 checks on a machine with much else to do. */
const timeoutMs = 300_000;
t.setTimeout(2 * timeoutMs);

async function startServer(t: Test) {
  const { url } = await testDatabase(t);
  const metricsPort = await freePort();
  const server = await startAuthServer(
    url,
    {
      SVC_METRICS_ENABLED: 'true',
      SVC_METRICS_EXPORTER: 'pull',
      OTEL_EXPORTER_PULL_HOST: '127.0.0.1',
      OTEL_EXPORTER_PULL_PORT: String(metricsPort),
    },
    { nodeFlags: ['--max-semi-space-size=8'] },
  );
  t.teardown(() => server.stop());
  const readMetric = async (series: string): Promise<number> => {
    const lines = (await fetchText(`http://127.0.0.1:${metricsPort}/metrics`)).split('\n');
    return Number(lines.find((line) => line.startsWith(`${series} `))?.split(' ')[1]);
  };
  return { server, readMetric };
}

t.test('200 connections with incomplete checks do not fill the memory, others are answered', async (t) => {
  const { server, readMetric } = await startServer(t);
  const client = connectAuthz(t, server.extAuthzPort);
  const refused = 'auth_client_buffers_refused_total{protocol="grpc"}';
  t.equal(await readMetric(refused), 0);
  t.equal(await readMetric('auth_client_buffers_refused_total{protocol="http"}'), 0);
  // Without a token: UNAUTHENTICATED.
  const check = async () => (await client.check({ method: 'GET', path: '/' })).status?.code === 16;
  for (let i = 0; i < 100; i += 1) await check();
  const answers: boolean[] = [];
  const growth = await measureGrowth(server.pid, async () => {
    const attack = sendIncompleteCalls({
      ...{ port: server.extAuthzPort, path: checkPath },
      ...{ connections: 200, streams: 4, messageBytes: mebibyte },
    });
    t.teardown(() => attack.stop());
    const isRefused = async () => {
      answers.push(await check());
      return (await readMetric(refused)) > 200 && answers.length >= 50;
    };
    await t.resolves(awaitUntil(isRefused, { what: '200 checks are refused', timeoutMs }));
    t.ok((await readMetric('auth_client_buffers_bytes')) <= maxBufferBytes);
    attack.stop();
  });
  // 800 MiB are sent. What exceeds the buffers is 10 to 40 MB, as the garbage collector runs.
  t.ok(growth < 2 * maxBufferBytes, `resident memory grew by ${Math.round(growth / 1e6)} MB`);
  t.ok(answers.length > 0 && answers.every((answered) => answered), `${answers.length} other checks`);
});
