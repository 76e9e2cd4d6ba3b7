// The audit log and deliveries of events, in Chromium over a real auth server.
import { awaitUntil } from '@tollgate/testkit/await-until';
import { startWebServer } from '@tollgate/testkit/web-server';
import postgres from 'postgres';
import t from 'tap';
import { ConsoleSuite, readCookies, readText, skip } from '../support/console-suite.ts';

t.setTimeout(180_000);
t.test('audit log and deliveries', { skip }, async (t) => {
  let statusOfReceiver = 500;
  const { port } = await startWebServer(t, (request, response) => {
    request.resume();
    response.writeHead(statusOfReceiver).end();
  });
  const suite = await ConsoleSuite.start(t, {
    auth: {
      ...{ SVC_EVENT_WEBHOOKS_ENABLED: 'true', SVC_EVENT_WEBHOOK_PRIVATE_HOSTS: '127.0.0.1' },
      // Tokens are refreshed 30 seconds before they expire: before each request, then.
      SVC_JWT_EXP: '20s',
    },
    // A busy machine is no failure.
    settings: { CONSOLE_REQUEST_TIMEOUT: '60s' },
  });
  const sql = postgres(suite.databaseUrl, { max: 1 });
  t.teardown(() => sql.end());
  const url = `http://127.0.0.1:${port}/T0KEN?key=SECRET`;
  const hook = { name: 'shop', url, event_types: ['user.created'] };
  await suite.callAuth('POST', '/admin/webhooks', hook);
  const bob = await suite.createUser({ email: 'bob@example.com', user_metadata: { name: '=1+1' } });
  const page = await suite.signIn('/audit?action=user_signedup');

  await t.test('entries are filtered by the URL, and one is shown in full', async (t) => {
    t.match(await readText(page), /user_signedup/);
    t.notMatch(await readText(page), 'oauth', 'the filter of the URL applies');
    await page.submit('/audit', { action: 'no_such_action' });
    t.match(await readText(page), 'No entry matches these filters');
    await page.open(`${suite.url}/audit`);
    await page.navigate(() => page.evaluate(`document.querySelector('tbody a').click()`));
    t.match(await readText(page), /"actor_kind": "\w+"/);
    t.match(await page.evaluate('location.search'), /^\?entry=[0-9a-f-]{36}$/);
  });

  await t.test('the log is saved with the filters of the page', async (t) => {
    const read = (path: string) =>
      page.evaluate(`fetch('${path}').then(async (response) =>
        [response.status, response.headers.get('content-disposition'), await response.text()].join('\\n'))`);
    await page.open(`${suite.url}/audit?action=user_signedup`);
    const links = await page.evaluate(
      `[...document.querySelectorAll('a[href*=export]')].map((link) => link.getAttribute('href')).join()`,
    );
    t.equal(links, '/audit/export.csv?action=user_signedup,/audit/export.jsonl?action=user_signedup');
    const csv = String(await read('/audit/export.csv?action=user_signedup'));
    t.match(csv, /^200\nattachment; filename="audit-\d{4}-\d\d-\d\d\.csv"\ntime,action,actor,/);
    t.notMatch(suite.logs(), 'failed to send a whole file');
    t.equal(csv.trimEnd().split('\r\n').length, 3, 'a head and both users');
    const [, , ...lines] = String(await read('/audit/export.jsonl?action=user_signedup'))
      .trimEnd()
      .split('\n');
    t.strictSame(
      lines.map((line) => JSON.parse(line).payload.action),
      ['user_signedup', 'user_signedup'],
    );
  });

  await t.test('a link to an entry that is not on the page says so', async (t) => {
    await page.open(`${suite.url}/audit?entry=${crypto.randomUUID()}`);
    t.match(await readText(page), /The entry is not on this page.*Entries/s);
  });

  await t.test('a failed event is sent again, and an endpoint gets a test', async (t) => {
    const giveUp = () =>
      sql`update auth.tollgate_events set failed_at = now() where last_error <> '' returning id`;
    await awaitUntil(async () => (await giveUp()).length > 0, { what: 'the first attempt' });
    await page.open(`${suite.url}/deliveries`);
    const text = await readText(page);
    t.match(text, /user\.created.*shop.*the response has status 500/s);
    t.match(text, `http://127.0.0.1:${port}/***`, 'the origin of the endpoint');
    t.notMatch(await page.evaluate('document.documentElement.outerHTML'), /T0KEN|SECRET/);
    t.equal(await page.evaluate(`document.querySelector('tbody a').getAttribute('href')`), `/users/${bob}`);
    statusOfReceiver = 204;
    await page.submit('/send-again');
    t.match(await readText(page, 'body'), 'user.created is being delivered again');
    await awaitUntil(async () => (await sql`select id from auth.tollgate_events`).length === 0, {
      what: 'the delivery',
    });
    await page.open(`${suite.url}/deliveries`);
    t.match(await readText(page), 'Every event has been delivered');
    await page.submit('/test');
    t.match(await readText(page, 'body'), 'The endpoint accepted a test event');
    statusOfReceiver = 500;
    await page.submit('/test');
    t.match(await readText(page, 'body'), /The test event failed: .*500/);
    const entries = await suite.callAuth('GET', `/admin/audit?actor_id=${suite.admin.id}&limit=100`);
    for (const action of ['event_redelivered', 'webhook_tested'])
      t.match(JSON.stringify(entries), `"${action}"`, 'the audit log names the person');
  });

  await t.test('an export outlives its access token, and breaks off with the session', async (t) => {
    // More than the buffers of a connection have.
    const entries = 5_000;
    await sql`insert into auth.audit_log_entries (id, payload, created_at, ip_address)
      select gen_random_uuid(), json_build_object('action', 'padding', 'text', repeat('x', 4000)), now() - n * interval '1 ms', ''
      from generate_series(1, ${entries}::int) n`;
    const cookie = await readCookies(page, suite.url);
    const save = (path: string) => fetch(suite.url + path, { headers: { cookie } });
    const countRefreshes = async () =>
      Number((await sql`select count(*) as total from auth.refresh_tokens`)[0]?.total);
    for (const [format, separator, heads] of [
      ['csv', '\r\n', 1],
      ['jsonl', '\n', 0],
    ] as const) {
      const before = await countRefreshes();
      const file = await (await save(`/audit/export.${format}?action=padding`)).text();
      t.equal(file.trimEnd().split(separator).length, entries + heads);
      t.ok((await countRefreshes()) >= before + entries / 1000, 'the token is refreshed for each page');
    }
    t.notMatch(suite.logs(), 'failed to send a whole file');
    const response = await save('/audit/export.jsonl?action=padding');
    t.equal(response.status, 200);
    // The server waits for the reader meanwhile.
    await suite.callAuth('DELETE', `/admin/users/${suite.admin.id}/sessions`);
    await t.rejects(response.text(), 'the connection is cut');
    t.match(suite.logs(), 'failed to send a whole file');
  });
});
