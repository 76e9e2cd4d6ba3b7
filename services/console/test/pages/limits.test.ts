// Limits in Chromium, over a real auth server and two limiters with own counters.
import { awaitUntil } from '@tollgate/testkit/await-until';
import t from 'tap';
import { ConsoleSuite, readText, skip } from '../support/console-suite.ts';
import { authForLimiters, startLimiter, type TestLimiter } from '../support/limiter.ts';

const limitOf = (requests: number) => `domain: shop
descriptors:
  - { key: user, rate_limit: { unit: day, requests_per_unit: ${requests} } }
  - { key: quiet, rate_limit: { unit: day, requests_per_unit: 9 } }
`;
/** Limits by user, as external authorization and access policies have them. */
const usersFile = `domain: users
descriptors:
  - { key: user_id, rate_limit: { unit: day, requests_per_unit: 4 } }
  - key: plan
    value: gold
    descriptors: [{ key: user_id, rate_limit: { unit: hour, requests_per_unit: 70 } }]
  - { key: org_id, rate_limit: { unit: day, requests_per_unit: 8 } }
  - { key: export, rate_limit: { unit: hour, requests_per_unit: 8, algorithm: concurrency } }
`;
const files = {
  'config/shop.yaml': limitOf(5),
  'config/users.yaml': usersFile,
  'candidate/config/shop.yaml': limitOf(2),
};
const attack = '<img src=x onerror=alert(1)>';

t.setTimeout(240_000);
t.test('limits in the console', { skip }, async (t) => {
  const limiters: TestLimiter[] = [];
  const suite = await ConsoleSuite.start(t, {
    auth: authForLimiters,
    async limiterUrls(auth) {
      limiters.push(await startLimiter(t, auth, files), await startLimiter(t, auth, files));
      return limiters.map(({ url }) => url);
    },
  });
  const [first, second] = limiters;
  if (first === undefined || second === undefined) throw new Error('two limiters were started');
  for (const value of ['ann', 'ann', 'ann', 'ann', 'ann', 'ann', attack])
    await first.send('shop', 'user', value);
  await second.send('shop', 'user', 'ann');
  const page = await suite.signIn('/limits');
  const show = async (path: string) => {
    await page.open(suite.url + path);
    return readText(page);
  };
  const counterOfAnn = '/limits/counter?domain=shop&descriptor=user%3Dann';

  await t.test('keys of all replicas are shown with their state, and update themselves', async (t) => {
    t.match(await readText(page), /user=ann.*refused now.*newly limited/s);
    t.match(await readText(page), attack, 'values are text');
    t.notMatch(await show('/limits?state=over'), attack);
    await first.send('shop', 'user', 'bob');
    await show('/limits?q=bob&domain=+shop');
    for (let hit = 0; hit < 3; hit += 1) await first.send('shop', 'user', 'bob');
    await awaitUntil(async () => (await readText(page)).includes('near'), { what: 'bob near the limit' });
    t.match(await show('/limits?state=new&q=bob'), 'No key matches these filters');
    for (let hit = 0; hit < 2; hit += 1) await first.send('shop', 'user', 'bob');
    await awaitUntil(async () => /user=bob.*refused now.*newly limited/s.test(await readText(page)), {
      what: 'bob newly limited',
    });
  });

  await t.test('domains lead to their limits, and these to their keys', async (t) => {
    t.match(await show('/limits/domains'), /shop\s+2\s+14 hits/);
    await page.navigate(() => page.evaluate(`document.querySelector('tbody a').click()`));
    t.match(await readText(page), /shop\.quiet.*9 per day.*shop\.user.*5 per day/s);
    await page.navigate(() => page.evaluate(`document.querySelector('#limit-shop\\\\.user a').click()`));
    t.match(await readText(page), 'user=ann');
    const filters = `Object.fromEntries(new FormData(document.querySelector('form[role=search]')))`;
    t.match(await page.evaluate(filters), { domain: 'shop', rule: 'user' }, 'other filters keep the rule');
  });

  await t.test('refusals have their reason', async (t) => {
    t.match(await show('/limits/refusals'), /user=ann.*1 hit over 5 per day of user.*refused/s);
    t.match(await show('/limits/refusals?q=carol'), 'Limiters remember no refusal that matches');
    for (let hit = 0; hit < 6; hit += 1) await first.send('shop', 'user', 'carol');
    await awaitUntil(
      async () => /user=carol.*1 hit over 5 per day of user.*refused/s.test(await readText(page)),
      { what: 'the refusal as it happens' },
    );
    t.notMatch(await show('/limits/refusals?q=carol'), 'are shown');
    for (let hit = 0; hit < 206; hit += 1) await first.send('shop', 'user', 'dan');
    t.match(await show('/limits/refusals?q=dan'), 'The newest 200 are shown');
  });

  await t.test('a trial is compared, per rule', async (t) => {
    t.match(await show('/limits/trial'), /shop\.user\s+2 per day\s+226 req.*Promote/s);
    t.match(
      await show('/limits/trial/promote?domain=shop'),
      /Files of limiter rules.*mv .*tollgate limits trial promote shop/s,
    );
  });

  await t.test('a counter is overridden for a time, and the override is ended', async (t) => {
    t.match(await show(counterOfAnn), /refused now.*6 of 5.*fullest of 2 replicas/s);
    await page.submit('/limits/override', { requestsPerUnit: '50', duration: 'soon', reason: 'x' });
    t.match(await readText(page), /Not accepted.*duration/s);
    t.match(await show(counterOfAnn), '6 of 5', 'nothing was changed');
    await page.submit('/limits/override', { requestsPerUnit: '50', duration: '2h', reason: attack });
    t.match(await readText(page), /has the limit 50 for 2h.*6 of 50.*by ada@example\.com: <img src=x/s);
    t.equal(await first.send('shop', 'user', 'ann'), 200, 'the limiter applies it');
    t.equal(await second.send('shop', 'user', 'ann'), 200);
    t.match(await show('/limits/overrides'), /user=ann.*ada@example\.com/s);
    await page.submit('/limits/override/end');
    t.match(await readText(page), /has ended.*7 of 5/s);
    t.equal(await first.send('shop', 'user', 'ann'), 429);
    for (const limiter of limiters)
      t.same([isAudited(limiter, 'override'), isAudited(limiter, 'remove override')], [true, true]);
  });

  await t.test('an override of a concurrency limit is a number at once', async (t) => {
    t.match(
      await show('/limits/counter?domain=users&descriptor=export%3Dall'),
      /8 at once.*Requests at once/s,
    );
    await page.submit('/limits/override', { requestsPerUnit: '3', duration: '2h', reason: 'x' });
    const text = await readText(page);
    t.match(text, /has the limit 3 for 2h.*Override\s+3 at once, ends/s);
    t.notMatch(text, 'per hour');
  });

  await t.test('a counter is reset after a question', async (t) => {
    await show(counterOfAnn);
    await page.navigate(() => page.evaluate(`document.querySelector('a[href*="/limits/reset"]').click()`));
    t.match(await readText(page), 'starts again at 0, on all replicas');
    await page.submit('/limits/reset');
    t.match(await readText(page), /0 of 5/);
    t.equal(await first.send('shop', 'user', 'ann'), 200);
    for (const limiter of limiters) t.ok(isAudited(limiter, 'reset'), 'on all replicas');
  });

  await t.test('invalid input is refused with the remedy', async (t) => {
    t.match(await show('/limits/counter?domain=shop&descriptor=user'), /Not accepted.*key=value/s);
    t.match(await show('/limits/counter?domain=shop&descriptor=other%3D1'), 'No rule matches');
  });

  await t.test('the page of a user has the limits that count them, with what is used now', async (t) => {
    const gil = await suite.createUser({ email: 'gil@example.com', app_metadata: { plan: 'gold' } });
    for (let hit = 0; hit < 3; hit += 1) await first.send('users', 'user_id', gil);
    const text = await show(`/users/${gil}`);
    t.match(
      text,
      new RegExp(`Limits used now.*user_id=${gil}\\s+users\\s+below limit\\s+3 of 4\\s+4 per day`, 's'),
    );
    t.match(text, new RegExp(`plan=gold,user_id=${gil}\\s+users\\s+below limit\\s+0 of 70`));
    t.notMatch(text, 'org_id');
    t.equal(await page.evaluate(`document.querySelectorAll('svg.bar:not(.period)').length`), 2);
    for (let hit = 0; hit < 2; hit += 1) await first.send('users', 'user_id', gil);
    t.match(await show(`/users/${gil}`), /refused now\s+5 of 4/);
    t.match(await readText(page), 'API keys');
    await page.navigate(() => page.evaluate(`document.querySelector('[id^=limit-] a').click()`));
    t.match(await readText(page), 'Override the limit for a time');
  });

  await t.test('without one replica, the page says so and shows the others', async (t) => {
    await second.stop();
    t.match(await show('/limits'), /does not answer.*user=ann/s);
  });
});

/** Whether the log has an audit line of the action with the name of the administrator. */
function isAudited(limiter: TestLimiter, action: string): boolean {
  const lines = limiter
    .logs()
    .split('\n')
    .filter((line) => line.includes('ada@example.com'));
  return lines.some((line) => new RegExp(`\\baction\\b\\W+${action}\\b`).test(line));
}
