// Policies and Explain in Chromium, over a real xDS server that reads a folder, with a limiter and
// an auth server as its clients.
import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeTextFolder } from '@tollgate/testkit/folders';
import { type RateLimitService, startRateLimitService, startXdsServer } from '@tollgate/testkit/services';
import { freePort } from '@tollgate/testkit/tcp';
import t from 'tap';
import { applyCommand } from '../../src/pages/policies/page.ts';
import { ConsoleSuite, readText, skip } from '../support/console-suite.ts';
import { authForLimiters, counterApi } from '../support/limiter.ts';

const attack = '<img src=x onerror=alert(1)>';

const limitsText = (requests: number, unit = 'Hour') => `apiVersion: ratelimit.tollgate.dev/v1alpha1
kind: RateLimitConfig
metadata: { name: web, namespace: shop, annotations: { note: '${attack}' } }
spec:
  domain: web
  limits:
    - name: user
      match: [{ key: user }]
      rateLimit: { requestsPerUnit: ${requests}, unit: '${unit}' }
`;

const policyText = (name: string, spec = '') =>
  `apiVersion: policy.tollgate.dev/v1alpha1\nkind: AccessPolicy\nmetadata: { name: ${name}, namespace: shop }\nspec:\n  hosts: [${name}.test]\n${spec}`;

const ordersSpec = `  rules:
    - { matches: [{ path: { value: /admin } }], access: { roles: [admin] } }
    - { matches: [{ path: { value: /health } }], access: { type: Public }, limits: [] }
  limits:
    - { name: per-user, by: [User], requests: 2, per: Year }
    - { name: per-key, by: [ApiKey], requests: 9, per: Year }
    - { name: per-client, by: [Client], requests: 7, per: Year, mode: Shadow }
    - { name: planned, by: [User], requests: 1, per: Year, mode: Trial }
`;

t.setTimeout(240_000);
t.test('policies in the console', { skip }, async (t) => {
  const folder = makeTextFolder(t);
  folder.write('web.yaml', limitsText(3));
  folder.write('policies.yaml', `${policyText('orders', ordersSpec)}---\n${policyText('carts')}`);
  const xds = await startXdsServer({ XDS_SOURCE: 'folder', XDS_FOLDER: folder.path });
  t.teardown(() => xds.stop());
  const limiterPort = String(await freePort());
  let limiter: RateLimitService | undefined;
  const suite = await ConsoleSuite.start(t, {
    settings: { CONSOLE_XDS_URL: xds.adminUrl },
    auth: {
      ...{ ...authForLimiters, SVC_EXT_AUTHZ_POLICY_SERVER: xds.address },
      SVC_EXT_AUTHZ_RATE_LIMIT_ADDRESS: `127.0.0.1:${limiterPort}`,
      SVC_EXT_AUTHZ_RATE_LIMIT_TIMEOUT: '10s',
    },
    async limiterUrls(auth) {
      const { url, settings } = await counterApi(auth);
      limiter = await startRateLimitService({
        ...{ CONFIG_TYPE: 'GRPC_XDS_SOTW', CONFIG_GRPC_XDS_SERVER_URL: xds.address },
        ...{ CONFIG_GRPC_XDS_NODE_ID: 'limiter-1', GRPC_PORT: limiterPort, ...settings },
      });
      t.teardown(limiter.stop);
      return [url];
    },
  });
  const path = '/policies/RateLimitConfig/shop/web';
  const page = await suite.signIn('/policies?find=shop');
  const open = async (to: string) => {
    await page.open(suite.url + to);
    return readText(page);
  };
  /** The text of a page as soon as it has a part. */
  const until = async (to: string, part: RegExp) => {
    let text = '';
    await awaitUntil(
      async () => {
        text = await open(to);
        if (!part.test(text)) throw new Error(text);
        return true;
      },
      { what: String(part) },
    );
    return text;
  };

  await t.test('objects are listed, filtered, and have their state', async (t) => {
    const all = await until('/policies', /1 of 1 limiters/);
    t.match(all, /shop\/carts.*AccessPolicy.*in force.*shop\/orders.*shop\/web.*RateLimitConfig/s);
    t.match(all, 'In all: AccessPolicy 2, of them refused 0; RateLimitConfig 1, of them refused 0');
    t.notMatch(await open('/policies?kind=AccessPolicy'), 'shop/web');
    t.match(await open('/policies?namespace=other'), 'No policy and no limits match these filters');
    t.match(await open('/policies?accepted=false'), 'No policy and no limits match these filters');
    await open('/policies');
    await page.submit('/policies', { find: 'orders' });
    t.match(await readText(page), 'shop/orders');
    t.notMatch(await readText(page), 'shop/carts');
    await page.navigate(() => page.evaluate(`document.querySelector('tbody a').click()`));
    t.equal(await page.evaluate('location.pathname'), '/policies/AccessPolicy/shop/orders');
    t.match(await open('/policies/AccessPolicy/shop/none'), /refused the request.*object_not_found/s);
    t.match(await open('/policies/Secret/shop/web'), 'Page not found');
  });

  await t.test('an object has its YAML as text, its conditions and who has it', async (t) => {
    const text = await until(path, /1 of 1 have acknowledged web/);
    t.match(text, /Accepted: True.*limiter-1\s+acknowledged\s+(now|\d+ \w+ ago)/s);
    t.ok(text.includes(attack), 'YAML is text');
    t.equal(await page.evaluate('document.querySelectorAll("main img").length'), 0);
    t.match(await page.evaluate(`document.querySelector('#L1').innerText`), /^1\s+apiVersion: /);
  });

  await t.test(
    'an invalid edit has its problem at the line, and the last valid one is in force',
    async (t) => {
      folder.write('web.yaml', limitsText(5));
      await until(path, /Version in force\s+2/);
      folder.write('web.yaml', limitsText(7, '<b>Fortnight'));
      const text = await until(path, /Version 3 is refused/);
      t.match(text, 'Version 2, the last valid one, stays in force');
      t.match(text, /Accepted: False\s+Invalid/);
      const noted = await page.evaluate(`[...document.querySelectorAll('.note.bad')].map((note) =>
      [note.previousElementSibling.innerText, note.innerText])`);
      t.match(noted, [
        [/\d+\s+unit: ["']?<b>Fortnight/, /^Invalid spec\.limits\[0\]\.rateLimit\.unit: .*<b>Fortnight/],
      ]);
      t.equal(await page.evaluate('document.querySelectorAll(".code b").length'), 0);
      t.match(
        await open('/policies?accepted=false'),
        /shop\/web.*refused version 2 in force.*Accepted: Invalid/s,
      );
    },
  );

  await t.test('two versions are compared, and an earlier one can be put back', async (t) => {
    t.match(await open(`${path}/versions`), 'Version 2 compared with 3', 'the one in force with the newest');
    const text = await open(`${path}/versions?from=1&to=2`);
    t.match(text, /-\s+requestsPerUnit: 3\n.*\+\s+requestsPerUnit: 5\n/s);
    t.match(text, 'replace web.yaml');
    const manifest = await page.evaluate(`document.querySelector('[data-copy]').dataset.copy`);
    folder.write('web.yaml', String(manifest));
    t.match(await until(path, /Version in force\s+4/), 'requestsPerUnit: 3');
    t.match(await open(`${path}/versions?from=1&to=4`), 'Both have the same text');
    t.match(await open(`${path}/versions?from=3`), 'Version 3 was refused');
    t.match(await open(`${path}/versions?from=99`), 'version_not_found');
  });

  /** Asks Explain. Returns the text of the answer, and the link to it. */
  const explain = async (fields: Readonly<Record<string, string>>) => {
    await open('/explain');
    await page.submit('/explain', fields);
    return { text: await readText(page), link: String(await page.evaluate('location.href')) };
  };
  const { id: userId, email } = suite.admin;
  const ordersUrl = 'https://orders.test/orders/1';
  /** Counts a request of the user in the limit per-user. */
  const count = async () => {
    const entries = [
      { key: 'limit', value: 'per-user' },
      { key: 'user_id', value: userId },
    ];
    const body = JSON.stringify({ domain: 'policy/shop/orders', descriptors: [{ entries }] });
    t.ok((await fetch(`${limiter?.httpUrl}/json`, { method: 'POST', body })).ok);
  };

  await t.test('a request is explained as a user, with policy, limits and counters', async (t) => {
    const as = `user:${userId}`;
    const { text, link } = await explain({ url: ordersUrl, as });
    t.match(text, /Answer\s+allowed\s+Status\s+200.*Request\s+GET orders\.test\/orders\/1/s);
    t.match(text, new RegExp(`x-auth-user-id: ${userId}`));
    t.match(text, /Found by\s+host and match\s+Routes\s+none takes the request/);
    t.match(text, /Policy\s+shop\/orders\s+Reason\s+one of its hosts is for orders\.test\s+Rule\s+default/);
    t.match(text, /Access\s+Authenticated; assurance aal1.*Decision\s+allows/s);
    t.match(text, /per-user\s+ok\s+user_id\s+Enforce\s+2 per year\s+0 of 2\s+2 hits\s+in \d+ \w+/);
    t.match(text, /per-key\s+not counted.*planned\s+on trial\s+user_id\s+Trial/s);
    t.ok(
      await page.evaluate(`!!document.querySelector('main a[href="/policies/AccessPolicy/shop/orders"]')`),
    );
    await count();
    await page.open(link);
    t.match(await readText(page), /1 of 2\s+1 hits/, 'the link asks again');
    await count();
    await page.open(link);
    t.match(
      await readText(page),
      /denied\s+Status\s+429\s+Error\s+over_request_rate_limit.*exceeded.*2 of 2\s+0 hits/s,
    );
    t.match(
      (await explain({ url: 'https://orders.test/admin', as })).text,
      /403.*role_not_allowed.*roles admin/s,
    );
    t.match(
      (await explain({ url: 'https://orders.test/health' })).text,
      /allowed.*Rule\s+\/health\s+Access\s+Public/s,
    );
    t.match(
      (await explain({ url: ordersUrl, as, policy: 'shop/carts' })).text,
      /Found by\s+policy.*shop\/carts/s,
    );
    t.match((await explain({ url: 'https://other.test/', as })).text, 'no access policy is for other.test');
  });

  await t.test('keys, clients and tokens are explained, and links have no credential', async (t) => {
    const key = await suite.callAuth('POST', '/admin/api-keys', { name: 'ci', owner: { user_id: userId } });
    const client = await suite.callAuth('POST', '/admin/oauth/clients', {
      ...{ client_name: 'batch', grant_types: ['client_credentials'], scopes: ['orders:read'] },
    });
    const [asUser, asKey, asClient] = [`user:${userId}`, `key:${key.id}`, `client:${client.client_id}`];
    const ofKey = /key id.*per-key\s+ok\s+key_id\s+Enforce\s+9 per year\s+0 of 9/s;
    const ofClient = /allowed.*client id.*per-client\s+ok\s+client_id\s+Shadow\s+7 per year/s;
    const secrets = {
      [asUser]: await suite.requestToken('/token?grant_type=password', { email, password: suite.password }),
      [asKey]: String(key.key),
      [asClient]: await suite.requestToken('/oauth/token', {
        ...{ grant_type: 'client_credentials', client_id: client.client_id },
        client_secret: client.client_secret,
      }),
    };
    for (const [as, credential] of Object.entries(secrets)) {
      const { text, link } = await explain({ url: `${ordersUrl}?access_token=sesame&page=2`, credential });
      const query = new URL(link).searchParams;
      t.equal(query.get('as'), as);
      t.equal(query.get('url'), `${ordersUrl}?access_token=removed&page=2`);
      t.notMatch(`${link} ${suite.logs()} ${text}`, credential);
      await page.open(link);
      t.equal(withoutTimes(await readText(page)), withoutTimes(text), 'the link has the same answer');
      if (as === asKey) t.match(text, ofKey);
      if (as === asClient) t.match(text, ofClient);
    }
    t.match((await explain({ url: ordersUrl, credential: 'wrong' })).text, 'The credential is not accepted');
    t.match(
      (await explain({ url: ordersUrl, as: 'user:1' })).text,
      /refused the request.*as must be user:<id>/s,
    );
    t.equal(await page.evaluate(`document.querySelector('#field-url').value`), ordersUrl, 'the form is kept');
  });

  await t.test('lines of the access log are explained, in both formats', async (t) => {
    const quoted = '"10.0.0.1" "curl/8" "1" "orders.test" "-"';
    const lines = [
      `[2026-11-28T12:00:00.000Z] "GET /admin?q=<b>&token=sesame HTTP/1.1" 403 UAEX 0 9 1 - ${quoted}`,
      JSON.stringify({
        ...{ method: 'GET', path: '/admin?q=<b>&token=sesame', authority: 'orders.test' },
        ...{ response_code: 403, response_flags: 'UAEX', x_forwarded_for: '10.0.0.1' },
      }),
    ];
    for (const line of lines) {
      const { text, link } = await explain({ line, as: `user:${userId}` });
      t.match(text, /denied\s+Status\s+403\s+Error\s+role_not_allowed.*shop\/orders/s);
      t.match(text, /Logged\s+403, UAEX: denied by external authorization/);
      t.notMatch(link, 'sesame');
      t.equal(await page.evaluate(`document.querySelector('#field-address').value`), '10.0.0.1');
      t.equal(await page.evaluate('document.querySelectorAll("main b").length'), 0);
    }
    t.match((await explain({ line: attack })).text, /Not accepted.*access log of Envoy/s);
  });

  await t.test('a bare descriptor is explained with its limit and counter', async (t) => {
    const ask = async (domain: string, descriptor: string) => {
      await open('/explain');
      await page.submit('/explain', { domain, descriptor });
      return readText(page);
    };
    const ofUser = await ask('policy/shop/orders', `limit=per-user,user_id=${userId}`);
    t.match(ofUser, /over the limit\s+Status\s+429.*Policy\s+shop\/orders.*2 of 2.*2 per year/s);
    t.match(await ask('web', 'user=ann'), /allowed\s+Status\s+200.*0 of 3.*3 per hour.*Rule\s+user/s);
    t.match(await ask('web', 'other=1'), 'No rule matches this descriptor');
    t.match(
      await ask('shop;reboot', 'other=$(reboot)'),
      "tollgate limits peek --domain 'shop;reboot' 'other=$(reboot)'",
      'the shell runs nothing of a link',
    );
    t.match(await ask('web', 'user'), /Not accepted.*key=value/s);
  });

  await t.test('a text is tried against what is live, and nothing is stored', async (t) => {
    const manifests = `${limitsText(9)}---\n${limitsText(9, attack)}---\n${policyText('new')}`;
    await page.open(`${suite.url}/policies/try`);
    await page.submit('/policies/try', { manifests });
    const text = await readText(page);
    t.match(text, /not all would be accepted.*shop\/new\s+new\s+AccessPolicy\s+accepted/s);
    t.match(text, /spec\.limits\[0\]\.rateLimit\.requestsPerUnit: 3 becomes 9/);
    t.match(
      await page.evaluate(`document.querySelector('.note.bad').previousElementSibling.innerText`),
      /^19\s.*unit: '<img/,
    );
    t.equal(await page.evaluate('document.querySelectorAll("main img").length'), 0);
    t.equal(await page.evaluate(`document.querySelector('textarea').value`), manifests);
    t.match(await open('/policies'), 'AccessPolicy 2, of them');
    await open(`/policies/try?kind=RateLimitConfig&namespace=shop&name=web`);
    t.match(await page.evaluate(`document.querySelector('textarea').value`), /requestsPerUnit: 3/);
  });

  await t.test('a file that is no object, and a server that stops, are shown', async (t) => {
    folder.write('broken.yaml', 'a: [');
    await until('/policies', /broken\.yaml.* is not read/);
    await xds.stop();
    t.match(await open('/policies'), /The xDS server does not answer.*The rest of the console works/s);
  });
});

/** Seconds may pass between two answers. */
const withoutTimes = (text: string) => text.replaceAll(/(retry-after: |in )\d+/g, '$1…');

t.test('the shell runs nothing of a manifest that a person pastes', async (t) => {
  t.equal(applyCommand('a: 1\n'), "kubectl apply --server-side -f - <<'EOF'\na: 1\nEOF");
  t.match(applyCommand('a: |\nEOF\nreboot'), /<<'EOF_'\na: \|\nEOF\nreboot\nEOF_$/);
});
