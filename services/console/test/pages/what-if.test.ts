// The page What if in Chromium, over an xDS server that reads a folder, and a limiter as its
// client.
import { unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeTextFolder } from '@tollgate/testkit/folders';
import { startXdsServer } from '@tollgate/testkit/services';
import t from 'tap';
import { sumReplicas } from '../../src/pages/limits/hour.ts';
import { readCandidate } from '../../src/pages/what-if/candidate.ts';
import { compareKeys } from '../../src/pages/what-if/compare.ts';
import { estimate } from '../../src/pages/what-if/estimate.ts';
import { checkAppearance } from '../support/appearance.ts';
import { ConsoleSuite, readText, skip } from '../support/console-suite.ts';
import { authForLimiters, startLimiter, type TestLimiter } from '../support/limiter.ts';

const limit = (requestsPerUnit: number, unitSeconds: number) => ({
  ...{ requestsPerUnit, unitSeconds, windows: undefined, rate: undefined },
  ...{ unlimited: false, quotaMode: false },
});
/** Minutes that begin with an hour. */
const minutes = (hits: readonly number[], peakSecond = hits) => ({ firstMinute: 60, hits, peakSecond });

t.test('a limit is estimated by the hits of each minute', async (t) => {
  t.same(estimate(limit(5, 60), minutes([9, 5, 2])), { peak: 9, refused: 4, isExact: true });
  t.same(estimate(limit(10, 3600), minutes([9, 5, 2])), { peak: 16, refused: 6, isExact: true });
  t.same(estimate(limit(10, 120), minutes([9, 5, 8])), { peak: 14, refused: 4, isExact: true });
  t.match(estimate(limit(10, 86_400), minutes([9, 5])), { peak: 14, refused: 4, isExact: false });
  t.same(estimate(limit(2, 1), minutes([100, 500], [5, 1])), { peak: 5, refused: 383, isExact: false });
  const rate = (algorithm: 'sliding_window' | 'token_bucket' | 'concurrency', burst: number) => ({
    ...limit(10, 120),
    rate: { algorithm, limit: 10, periodSeconds: 120, burst },
  });
  t.match(estimate(rate('sliding_window', 10), minutes([9, 5, 8])), { peak: 14, refused: 4 });
  t.match(estimate(rate('token_bucket', 20), minutes([9, 30, 0, 30])), { refused: 29, isExact: false });
  t.equal(estimate(rate('concurrency', 10), minutes([1])), undefined);
  t.equal(estimate({ ...limit(5, 60), quotaMode: true }, minutes([9])), undefined);
  t.match(estimate({ ...limit(0, 60), unlimited: true }, minutes([9])), { refused: 0 });
});

t.test('hits of replicas are summed by minute', async (t) => {
  const key = (hits: readonly number[]) => ({
    ...{ domain: 'web', entries: [{ key: 'user', value: 'ann' }], rule: 'user', algorithm: 'fixed_window' },
    ...{ unit: 'hour', requestsPerUnit: 5, shadowMode: false, fromRequest: false },
    ...{ hits: [...hits], refused: [...hits], peakSecond: [...hits] },
  });
  const report = (since: string, complete: boolean, hits: readonly number[]) =>
    ({ since: `2026-01-01T${since}Z`, complete, keys: [key(hits)] }) as never;
  const reports = [report('00:01:00', true, [1, 2]), report('00:00:00', false, [4, 8])];
  const { keys, ...hour } = sumReplicas(reports, Date.parse('2026-01-01T00:03:30Z'));
  t.same(hour, { sinceMs: Date.parse('2026-01-01T00:00:00Z'), minutes: 4, isComplete: false });
  t.same(
    keys.map(({ hits }) => hits),
    [[4, 9, 2, 0]],
  );
});

t.test('a result that missing hits may change is not known', async (t) => {
  const { domains } = readCandidate(
    'domain: web\ndescriptors: [{ key: user, rate_limit: { unit: minute, requests_per_unit: 95 } }]',
  );
  const judge = (hits: number, refused: number, missed: number) => {
    const key = {
      ...{ domain: 'web', entries: [{ key: 'user', value: 'ann' }], rule: 'user', unit: 'minute' },
      ...{ algorithm: 'fixed_window', requestsPerUnit: 100, shadowMode: false, fromRequest: false },
      ...{ hits: [hits], refused: [refused], peakSecond: [hits], missed: [missed] },
    };
    const hour = { sinceMs: 0, minutes: 1, isComplete: false, keys: [key], problems: [] };
    return compareKeys({ domains, live: new Map() }, hour as never).keys[0];
  };
  t.match(judge(200, 100, 0), { result: 'more', mayMiss: false });
  const reason = 'up to 48 hits are missing';
  t.match(judge(152, 100, 48), { result: 'unknown', reason, mayMiss: true });
  t.match(judge(300, 0, 48), { result: 'unknown' }, 'some may have been refused');
  t.match(judge(400, 100, 48), { result: 'more', mayMiss: true }, 'whatever is missing');
});

const attack = '<img src=x onerror=alert(1)>';

const config = (
  requests: number,
  { name = 'web', more = '' } = {},
) => `apiVersion: ratelimit.tollgate.dev/v1alpha1
kind: RateLimitConfig
metadata: { name: ${name}, namespace: shop }
spec:
  domain: web
${more}  descriptors:
    - { key: user, rateLimit: { unit: Hour, requestsPerUnit: ${requests} } }
`;

const policy = (limits: string) => `apiVersion: policy.tollgate.dev/v1alpha1
kind: AccessPolicy
metadata: { name: orders, namespace: shop }
spec:
  hosts: [orders.test]
  limits:
${limits}`;

const perUser = (requests: number) =>
  `    - { name: per-user, by: [User], requests: ${requests}, per: Hour }\n`;

t.setTimeout(240_000);
t.test('what if, and trials, in the console', { skip }, async (t) => {
  const folder = makeTextFolder(t);
  folder.write('web.yaml', config(3));
  folder.write('orders.yaml', policy(perUser(5)));
  const other = config(9, { name: 'other' }).replace('key: user', 'key: tenant');
  folder.write('other.yaml', other);
  const xds = await startXdsServer({ XDS_SOURCE: 'folder', XDS_FOLDER: folder.path });
  t.teardown(() => xds.stop());
  let started: TestLimiter | undefined;
  const suite = await ConsoleSuite.start(t, {
    auth: authForLimiters,
    settings: { CONSOLE_XDS_URL: xds.adminUrl },
    async limiterUrls(auth) {
      const source = { CONFIG_TYPE: 'GRPC_XDS_SOTW', CONFIG_GRPC_XDS_SERVER_URL: xds.address };
      started = await startLimiter(t, auth, {}, { ...source, CONFIG_GRPC_XDS_NODE_ID: 'limiter-1' });
      return [started.url];
    },
  });
  const limiter = started;
  if (limiter === undefined) throw new Error('a limiter was started');
  const send = async (user: string, times: number) => {
    for (let i = 0; i < times; i += 1) await limiter.send('web', 'user', user);
  };
  await send('ann', 5);
  await send('bob', 2);
  await send(attack, 1);
  await limiter.send('web', 'tenant', 'acme');
  const page = await suite.signIn('/what-if');
  const compare = async (yaml: string) => {
    await page.open(`${suite.url}/what-if`);
    await page.submit('/what-if', { yaml });
    return readText(page);
  };

  await t.test('keys are refused and freed, and other objects are left out', async (t) => {
    const text = await compare(config(1));
    t.match(text, /1 would be refused.*1 refused more.*1 unchanged/s);
    t.match(text, /Of other objects\s+1 keys/);
    t.match(text, /web\.user\s+1 per hour\s+3 keys\s+1 keys\s+1 keys/);
    t.match(
      text,
      /user=bob web\s+would be refused\s+3 per hour\s+2 hits\s+0 hits\s+1 per hour\s+2 hits\s+1 hits/,
    );
    t.match(text, /user=ann web\s+refused more\s+3 per hour\s+5 hits\s+2 hits/);
    t.ok(text.includes(attack), 'values are text');
    t.equal(await page.evaluate('document.querySelectorAll("main img").length'), 0);
    await checkAppearance(t, page);
    t.match(await compare(config(20)), /1 freed.*user=ann web\s+freed/s);
    t.match(await compare(config(3)), /3 unchanged/);
    t.match(await compare(config(1, { more: '  shadowMode: true\n' })), /Error/);
  });

  await t.test('a file of limiter rules is a whole domain', async (t) => {
    const text = await compare(
      'domain: web\ndescriptors: [{ key: tenant, rate_limit: { unit: hour, requests_per_unit: 9 } }]',
    );
    t.match(text, /3 no longer limited.*1 unchanged/s);
    t.match(
      text,
      /cat > "\$RUNTIME_ROOT\/\$CANDIDATE_RUNTIME_SUBDIRECTORY\/config"\/web\.yaml <<'EOF'\ndomain: web/,
    );
    t.match(
      await compare(
        'domain: nothing\ndescriptors: [{ key: a, rate_limit: { unit: day, requests_per_unit: 1 } }]',
      ),
      'No key of these domains',
    );
  });

  await t.test('errors are at their lines', async (t) => {
    await compare(config(1).replace('Hour', 'Hours'));
    t.match(await page.evaluate(`document.querySelector('#L7 + .note')?.innerText`), /Error.*unit/);
    t.match(await compare('domain: web\ndescriptors: [{ key: user, rate_limit: { unit: hours } }]'), /Error/);
    t.match(await compare('a: 1'), /the content is unknown/);
    t.match(await compare(`# ${'x'.repeat(300_000)}`), /Not accepted.*KiB/s);
  });

  await t.test('a candidate begins with an object in force', async (t) => {
    await page.open(`${suite.url}/what-if`);
    t.match(await readText(page), /Begin with limits in force.*shop\/orders.*shop\/other.*shop\/web/s);
    await checkAppearance(t, page);
    await page.navigate(() => page.evaluate(`document.querySelector('main a[href*="name=web"]').click()`));
    t.match(await page.evaluate(`document.querySelector('textarea').value`), /requestsPerUnit: 3/);
    t.notMatch(await readText(page), 'Begin with');
  });

  await t.test('the candidate is beside the live one, and is copied as a trial', async (t) => {
    const text = await compare(config(1));
    t.match(text, /-\s+requestsPerUnit: 3.*\+\s+requestsPerUnit: 1/s);
    t.notMatch(text, /[-+]\s+namespace: shop/, 'the order of keys is no difference');
    t.match(text, /Add this text as a file to the folder.*name: web-trial.*trial: true/s);
    const ofPolicy = await compare(policy(perUser(2)));
    t.match(
      ofPolicy,
      /replace orders\.yaml.*name: per-user\n.*requests: 5.*name: per-user-trial.*requests: 2.*mode: Trial/s,
    );
    const ofShadow = await compare(policy(perUser(2).replace(' }', ', mode: Shadow }')));
    t.match(
      ofShadow,
      /AccessPolicy shop\/orders cannot be put on trial: the limit 'per-user' has the mode Shadow/,
    );
    const ofOnly = await compare(policy(perUser(2).replace(' }', ', only: true }')));
    t.match(ofOnly, /cannot be put on trial: the limit 'per-user' has only.* name 'per-user-trial' in these/);
    const ofOtherForm = await compare(
      config(1)
        .replace('{ key: user,', '{ name: user, match: [{ key: user }],')
        .replace('descriptors', 'limits'),
    );
    t.match(
      ofOtherForm,
      /cannot be put on trial: the candidate has limits, and .* write both in the same form/,
    );
    t.notMatch(ofOtherForm, 'web-trial');
  });

  await t.test('a trial is promoted by the text of the page', async (t) => {
    folder.write('web-trial.yaml', config(1, { name: 'web-trial', more: '  trial: true\n' }));
    await awaitUntil(
      async () => {
        await send('carl', 1);
        await page.open(`${suite.url}/limits/trial`);
        return (await readText(page)).includes('web.user');
      },
      { what: 'the trial' },
    );
    await page.navigate(() =>
      page.evaluate(`document.querySelector('a[aria-label="Promote web.user"]').click()`),
    );
    const text = await readText(page);
    t.match(text, /RateLimitConfig shop\/web: the change.*-\s+requestsPerUnit: 3.*\+\s+requestsPerUnit: 1/s);
    t.match(text, /replace web\.yaml.*and remove web-trial\.yaml/s);
    const yaml = String(await page.evaluate(`document.querySelector('[data-copy]').dataset.copy`));
    t.notMatch(yaml, 'trial');
    folder.write('web.yaml', yaml);
    unlinkSync(join(folder.path, 'web-trial.yaml'));
    let users = 0;
    const isPromoted = async () => {
      users += 1;
      await send(`new ${users}`, 1);
      return (await limiter.send('web', 'user', `new ${users}`)) === 429;
    };
    await awaitUntil(isPromoted, { what: 'the limit of 1' });
  });
});
