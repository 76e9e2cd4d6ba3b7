import t from 'tap';
import { usageWarning } from '../../src/decision/usage-checks.ts';
import { connect, descriptorsOf } from '../support/grpc-client.ts';
import { startApp } from '../support/start-app.ts';

const rules = {
  'd.yaml': `
domain: d
descriptors:
  - key: always
    rate_limit: { unit: day, requests_per_unit: 10000, algorithm: token_bucket, charge: always }
  - key: allowed
    rate_limit: { unit: day, requests_per_unit: 10000, algorithm: token_bucket }
  - key: window
    rate_limit: { unit: day, requests_per_unit: 10000 }
  - key: slots
    rate_limit: { unit: day, requests_per_unit: 10000, algorithm: concurrency }
`,
  'atomic.yaml': `
domain: atomic
atomic: true
descriptors:
  - key: window
    rate_limit: { unit: day, requests_per_unit: 10000 }
`,
};

const ok = 1;
const overLimit = 2;

t.test('usage that is reported after the response is charged, and then checks are refused', async (t) => {
  const { ports } = await startApp(t, { rules });
  const client = connect(t, `127.0.0.1:${ports.grpc}`);
  const send = async (hitsAddend: bigint) => {
    const [one] = descriptorsOf({ always: 'a' });
    const descriptors = one === undefined ? [] : [{ ...one, hitsAddend }];
    return (await client.shouldRateLimit({ domain: 'd', descriptors })).overallCode;
  };
  const codes: number[] = [];
  for (let i = 0; i < 8; i += 1) {
    const code = await send(0n);
    codes.push(code);
    if (code === ok) await send(4_500n);
  }
  t.same(codes, [ok, ok, ok, overLimit, overLimit, overLimit, overLimit, overLimit]);
});

t.test('a check of 0 hits that meets a limit without charge: always is a warning, once a rule', async (t) => {
  const { ports, stats, logLines } = await startApp(t, { rules });
  const client = connect(t, `127.0.0.1:${ports.grpc}`);
  const check = async (domain: string, key: string) => {
    const descriptors = descriptorsOf({ [key]: 'a' }).map((one) => ({ ...one, hitsAddend: 0n }));
    await client.shouldRateLimit({ domain, descriptors });
  };
  const explain = async (domain: string, key: string) => {
    const query = new URLSearchParams({ domain, descriptor: `${key}=a` });
    const response = await fetch(`http://127.0.0.1:${ports.debug}/explain?${query}`);
    return await response.text();
  };
  const checks = stats.counter('ratelimit.uncharged_usage_checks');
  t.equal(checks.value, 0);
  t.notMatch(await explain('d', 'allowed'), usageWarning, 'a rule that was not checked');
  for (const key of ['always', 'allowed', 'allowed', 'window', 'slots']) await check('d', key);
  await check('atomic', 'window');
  const warnings = logLines.filter((line) => line['@message'] === usageWarning).map(({ rule }) => rule);
  t.same(warnings, ['d.allowed', 'atomic.window']);
  t.equal(checks.value, 3);
  t.match(await explain('d', 'allowed'), `warning: ${usageWarning}`);
  for (const key of ['always', 'window', 'slots']) t.notMatch(await explain('d', key), 'warning');
});
