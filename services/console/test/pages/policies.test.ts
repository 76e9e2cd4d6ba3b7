// Policies in Chromium, over a real xDS server that reads a folder, with a limiter as its client.
import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeTextFolder } from '@tollgate/testkit/folders';
import { startRateLimitService, startXdsServer } from '@tollgate/testkit/services';
import t from 'tap';
import { applyCommand } from '../../src/pages/policies/page.ts';
import { ConsoleSuite, readText, skip, submit } from '../support/console-suite.ts';

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

const policyText = (name: string) =>
  `apiVersion: policy.tollgate.dev/v1alpha1\nkind: AccessPolicy\nmetadata: { name: ${name}, namespace: shop }\nspec: { hosts: [${name}.test] }\n`;

t.setTimeout(240_000);
t.test('policies in the console', { skip }, async (t) => {
  const folder = makeTextFolder(t);
  folder.write('web.yaml', limitsText(3));
  folder.write('policies.yaml', `${policyText('orders')}---\n${policyText('carts')}`);
  const xds = await startXdsServer({ XDS_SOURCE: 'folder', XDS_FOLDER: folder.path });
  t.teardown(() => xds.stop());
  const limiter = await startRateLimitService({
    ...{ CONFIG_TYPE: 'GRPC_XDS_SOTW', CONFIG_GRPC_XDS_SERVER_URL: xds.address },
    CONFIG_GRPC_XDS_NODE_ID: 'limiter-1',
  });
  t.teardown(() => limiter.stop());
  const suite = await ConsoleSuite.start(t, { settings: { CONSOLE_XDS_URL: xds.adminUrl } });
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
    await submit(page, '/policies', { find: 'orders' });
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
    t.match(await open(`${path}/versions?from=1&to=4`), 'The two versions have the same text');
    t.match(await open(`${path}/versions?from=3`), 'Version 3 was refused');
    t.match(await open(`${path}/versions?from=99`), 'version_not_found');
  });

  await t.test('a text is tried against what is live, and nothing is stored', async (t) => {
    const manifests = `${limitsText(9)}---\n${limitsText(9, attack)}---\n${policyText('new')}`;
    await page.open(`${suite.url}/policies/try`);
    await submit(page, '/policies/try', { manifests });
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

t.test('the shell runs nothing of a manifest that a person pastes', async (t) => {
  t.equal(applyCommand('a: 1\n'), "kubectl apply --server-side -f - <<'EOF'\na: 1\nEOF");
  t.match(applyCommand('a: |\nEOF\nreboot'), /<<'EOF_'\na: \|\nEOF\nreboot\nEOF_$/);
});
