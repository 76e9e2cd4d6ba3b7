import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { RateLimitResponse_Code as Code } from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { temporaryFolder } from '@tollgate/testkit/folders';
import {
  type IncompleteRequests,
  measureGrowth,
  sendIncompleteBodies,
  sendIncompleteCalls,
} from '@tollgate/testkit/incomplete-requests';
import { fetchText, startRateLimitService } from '@tollgate/testkit/services';
import t, { type Test } from 'tap';
import { shouldRateLimitPath } from '../../src/decision/decide.ts';
import { connect, descriptorsOf } from '../support/grpc-client.ts';

const mebibyte = 1024 * 1024;
const rules =
  'domain: demo\ndescriptors: [{ key: a, rate_limit: { unit: day, requests_per_unit: 1000000 } }]';
const request = { domain: 'demo', descriptors: descriptorsOf({ a: 'b' }) };

async function startLimiter(t: Test) {
  const folder = temporaryFolder();
  t.teardown(() => folder.remove());
  mkdirSync(join(folder.path, 'config'));
  writeFileSync(join(folder.path, 'config/demo.yaml'), rules);
  const settings = { RUNTIME_ROOT: folder.path, RUNTIME_WATCH_ROOT: 'false' };
  // As in the image.
  const limiter = await startRateLimitService(settings, { nodeFlags: ['--max-semi-space-size=8'] });
  t.teardown(() => limiter.stop());
  return limiter;
}

async function readStat(debugUrl: string, name: string): Promise<number> {
  const text = await fetchText(`${debugUrl}/stats`);
  return Number(new RegExp(`^${name.replaceAll('.', '\\.')}: (\\d+)$`, 'm').exec(text)?.[1]);
}

const path = shouldRateLimitPath;
const attacks: Record<string, (ports: { grpcPort: number; httpUrl: string }) => IncompleteRequests> = {
  '200 connections with incomplete gRPC messages of 1 MiB': ({ grpcPort: port }) =>
    sendIncompleteCalls({ port, path, connections: 200, streams: 4, messageBytes: mebibyte }),
  '400 half-open bodies of 1 MiB for /json': ({ httpUrl }) =>
    sendIncompleteBodies({ url: `${httpUrl}/json`, connections: 400, bodyBytes: mebibyte }),
};

for (const [name, start] of Object.entries(attacks)) {
  t.test(`${name} take less than 100 MB, and other clients get their answers`, async (t) => {
    const limiter = await startLimiter(t);
    const client = connect(t, limiter.address);
    const countRefused = async () =>
      (await readStat(limiter.debugUrl, 'ratelimit.client_buffers.refused.__protocol=grpc')) +
      (await readStat(limiter.debugUrl, 'ratelimit.client_buffers.refused.__protocol=http'));
    t.equal(await countRefused(), 0);
    const decide = async () => {
      const { overallCode } = await client.shouldRateLimit(request);
      const body = JSON.stringify(request);
      const { status } = await fetch(`${limiter.httpUrl}/json`, { method: 'POST', body });
      return overallCode === Code.OK && status === 200;
    };
    for (let i = 0; i < 100; i += 1) await decide();
    const answers: boolean[] = [];
    const growth = await measureGrowth(limiter.pid, async () => {
      const attack = start(limiter);
      t.teardown(() => attack.stop());
      const isRefused = async () => {
        answers.push(await decide());
        return (await countRefused()) > 200 && answers.length >= 50;
      };
      await t.resolves(awaitUntil(isRefused, { what: '200 requests are refused', timeoutMs: 60_000 }));
      t.ok((await readStat(limiter.debugUrl, 'ratelimit.client_buffers.bytes')) <= 64 * mebibyte);
      attack.stop();
    });
    t.ok(growth < 100e6, `resident memory grew by ${Math.round(growth / 1e6)} MB`);
    t.ok(
      answers.length > 0 && answers.every((answered) => answered),
      `${answers.length} answers for other clients`,
    );
    const isReleased = async () => (await readStat(limiter.debugUrl, 'ratelimit.client_buffers.bytes')) === 0;
    await awaitUntil(isReleased, { what: 'nothing is held after the attack' });
  });
}
