// Attacks on the console, over all pages, actions and downloads of the registry: a new one is
// covered without a row.
import { connect } from 'node:net';
import { serviceKey } from '@tollgate/kit/service-key';
import { authServerSecret } from '@tollgate/testkit/services';
import postgres from 'postgres';
import t, { type Test } from 'tap';
import { areas } from '../src/pages/registry.ts';
import { Cookies } from '../src/sign-in/cookies.ts';
import { ConsoleSuite, skip } from './support/console-suite.ts';
import { Crawler, type InspectedDocument } from './support/crawler.ts';
import { signInByFetch } from './support/fetch-session.ts';
import { authForLimiters, startLimiter, type TestLimiter } from './support/limiter.ts';
import {
  attack,
  marker,
  places,
  plantCounters,
  plantedId,
  plantedProvider,
  plantedRules,
  plantRows,
  startPlantedMetrics,
  startPlantedXds,
} from './support/planted.ts';

const routes = areas.flatMap(({ pages }) => pages.map(({ path }) => path));
const actions = [...areas.flatMap((area) => area.actions.map(({ path }) => path)), '/sign-out'];
const downloads = areas.flatMap((area) => area.downloads ?? []);

/** Pages of a route that are opened: lists lead to more that look the same. */
const maxPerRoute = 4;

const isPath = (route: string, path: string) =>
  new RegExp(`^${route.replaceAll(/:\w+/g, '[^/]+')}$`).test(path.replace(/\?.*/, ''));

t.setTimeout(240_000);
t.test('attacks', { skip }, async (t) => {
  const limiters: TestLimiter[] = [];
  const suite = await ConsoleSuite.start(t, {
    settings: {
      CONSOLE_XDS_URL: await startPlantedXds(t),
      CONSOLE_METRICS_URLS: await startPlantedMetrics(t),
    },
    auth: { ...authForLimiters, SVC_ORGANIZATIONS_ENABLED: 'true', SVC_EVENT_WEBHOOKS_ENABLED: 'true' },
    async limiterUrls(auth) {
      limiters.push(await startLimiter(t, auth, { 'config/planted.yaml': plantedRules }));
      return limiters.map(({ url }) => url);
    },
  });
  const [limiter] = limiters;
  if (limiter === undefined) throw new Error('a limiter was started');
  await suite.createUser({ email: 'planted@example.com' });
  await suite.callAuth('POST', '/admin/custom-providers', {
    ...{
      provider_type: 'oauth2',
      identifier: plantedProvider,
      name: 'x',
      client_id: 'app',
      client_secret: 'x',
    },
    ...{ authorization_url: 'https://forum.example/a', token_url: 'https://forum.example/t' },
    userinfo_url: 'https://forum.example/me',
  });
  await plantRows(suite.databaseUrl);
  await plantCounters(limiter, serviceKey(authServerSecret));
  const person = {
    ...{ consoleUrl: suite.url, authUrl: suite.auth.url },
    ...{ email: suite.admin.email, password: suite.password },
  };
  const session = await signInByFetch(person);
  const other = await signInByFetch(person);
  const crawler = await Crawler.open(await suite.newPage(), {
    ...{ url: suite.url, cookie: session.cookie },
    // Links to the run-book and to the planted provider.
    origins: ['https://github.com', 'https://forum.example', 'https://x'],
  });
  const visited = new Map<string, InspectedDocument>();
  await t.test('texts of others are text on every page', (t) => visitAll(t, crawler, visited));
  const csrf =
    [...visited.values()].flatMap(({ forms }) => forms.flatMap(({ fields }) => fields._csrf ?? []))[0] ?? '';
  const fill = (route: string) => fillRoute(route, [...visited.keys()]);

  await t.test('parameters of the URL are text on every page', async (t) => {
    const names = new Set(['cursor', 'sort', 'region']);
    for (const { links, forms } of visited.values()) {
      for (const link of links)
        for (const name of new URL(link, suite.url).searchParams.keys()) names.add(name);
      for (const { method, fields } of forms)
        if (method === 'get') for (const name of Object.keys(fields)) names.add(name);
    }
    const check = async (path: string, given: readonly string[]) => {
      const query = new URLSearchParams(given.map((name): [string, string] => [name, attack(name)]));
      t.same(
        (await crawler.inspect(await crawler.send(`${path}?${query}`))).problems,
        [],
        `${path} ${given}`,
      );
    };
    for (const route of routes) {
      const path = fill(route);
      await check(path, [...names]);
      const own = visited.get(path)?.forms.find(({ method }) => method === 'get')?.fields ?? {};
      for (const name of [...Object.keys(own), 'region']) await check(path, [name]);
    }
    await check('/callback', ['error', 'error_description', 'state', 'code', 'iss']);
  });

  await t.test('forms that are not of this page in this session are rejected', async (t) => {
    const ofOther = await crawler.send('/users', { headers: { cookie: other.cookie } });
    const [form] = (await crawler.inspect(ofOther)).forms;
    const stolen = form?.fields._csrf ?? '';
    t.not(stolen, csrf);
    const attempts: Readonly<Record<string, RequestInit>> = {
      'without a token': { body: new URLSearchParams() },
      'with the token of another session': { body: new URLSearchParams({ _csrf: stolen }) },
      'with a part of the token': { body: new URLSearchParams({ _csrf: csrf.slice(0, -1) }) },
      'with another cookie': {
        body: new URLSearchParams({ _csrf: csrf }),
        headers: { cookie: other.cookie },
      },
      'of another origin': {
        body: new URLSearchParams({ _csrf: csrf }),
        headers: { origin: 'https://evil.example' },
      },
      'of an opaque origin': { body: new URLSearchParams({ _csrf: csrf }), headers: { origin: 'null' } },
      ...Object.fromEntries(
        ['cross-site', 'same-site', 'none'].map((site) => [
          `of a page that is ${site}`,
          { body: new URLSearchParams({ _csrf: csrf }), headers: { 'sec-fetch-site': site } },
        ]),
      ),
    };
    for (const action of actions)
      for (const [name, init] of Object.entries(attempts))
        t.equal(
          (await crawler.send(fill(action), { method: 'POST', ...init })).status,
          403,
          `${action} ${name}`,
        );
    const types = ['text/plain', 'multipart/form-data; boundary=x', 'application/json'];
    for (const type of types) {
      const init = { method: 'POST', body: `_csrf=${csrf}`, headers: { 'content-type': type } };
      t.equal((await crawler.send(fill('/users/:id/ban'), init)).status, 415, type);
    }
    t.equal((await crawler.send('/users')).status, 200, 'the session goes on');
  });

  await t.test('files have no header and no formula of others', async (t) => {
    const sql = postgres(suite.databaseUrl, { max: 1 });
    const formulas = ['=1+1', '+1', '-1', '@SUM(1)', '\t=1', '\r=1', '\n=1', '"=1'];
    for (const [index, text] of formulas.entries())
      await sql`insert into auth.audit_log_entries (id, payload, created_at, ip_address)
        values (${crypto.randomUUID()}, ${sql.json({ actor_username: text, action: `formula-${index}` })}, now(), '')`;
    await sql.end();
    const forms = [...visited.values()].flatMap((document) => document.forms);
    const names = new Set(
      forms.filter(({ method }) => method === 'get').flatMap(({ fields }) => Object.keys(fields)),
    );
    const query = new URLSearchParams(
      [...names].map((name): [string, string] => [name, '"\r\nx-planted: 1\r\n\r\n']),
    );
    for (const { path } of downloads) {
      for (const url of [path, `${path}?${query}`]) {
        const { headers, status } = await crawler.send(url);
        t.notOk(headers.has('x-planted'), url);
        if (status === 200) t.match(headers.get('content-disposition'), /^attachment; filename="[\w.-]+"$/);
      }
      const { headers, text } = await crawler.send(path);
      if (headers.get('content-type')?.startsWith('text/csv') !== true) continue;
      const fields = [...text.matchAll(/(?:^|,|\r\n)(?:"((?:[^"]|"")*)"|([^",\r\n]*))/g)].map(
        ([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain ?? '',
      );
      t.ok(fields.includes(`'=1+1`), 'formulas are in the file, as text');
      t.same(
        fields.filter((field) => /^\s*[=+\-@]/.test(field)),
        [],
        path,
      );
    }
  });

  await t.test('a sign-in gets a new session, and returns only to the console', async (t) => {
    const planted = 'tollgate-console=planted';
    const signedIn = await signInByFetch({ ...person, cookie: planted });
    t.notMatch(signedIn.cookie, 'planted');
    const withPlanted = await crawler.send('/users', { headers: { cookie: planted } });
    t.equal(withPlanted.status, 303, 'the planted id is no session');
    const again = await signInByFetch({ ...person, cookie: other.cookie }).catch(() => undefined);
    t.notOk(again, 'who is signed in does not start a sign-in');
    const paths = [
      '//evil.example/',
      '/\\evil.example',
      '/%2f%2fevil.example',
      '/%5cevil.example',
      '/users//evil.example',
    ];
    for (const path of [
      ...paths,
      '/users?to=//evil.example',
      '/users?%0d%0alocation:%20https://evil.example',
    ]) {
      const { status, headers } = await crawler.send(path, { headers: { cookie: '' } });
      if (status !== 303) continue;
      t.equal(new URL(headers.get('location') ?? '').origin, suite.auth.url);
      const { location } = await signInByFetch({ ...person, path });
      t.equal(new URL(location).origin, suite.url, path);
    }
    const location = await sendRaw(suite.url, 'GET http://evil.example/users HTTP/1.1\r\nHost: evil.example');
    t.notMatch(
      location.split('\r\n\r\n')[0]?.replace(/set-cookie.*/i, ''),
      'evil',
      'the host of a request is not used',
    );
  });

  await t.test('cookies are for the server only', async (t) => {
    const [, ...attributes] = session.setCookie.split('; ');
    t.same(attributes.toSorted(), ['HttpOnly', 'Path=/', 'SameSite=Lax']);
    t.match(session.pendingCookie, /; Path=\/; HttpOnly; SameSite=Lax; Max-Age=600$/);
    const secure = new Cookies('https://console.example.com');
    for (const cookie of [secure.set(secure.session, 'x'), secure.set(secure.signIn('x'), 'x', 1000)])
      t.match(cookie, /^__Host-.*; Path=\/; HttpOnly; SameSite=Lax; Secure/);
    t.equal(Buffer.from(session.cookie.split('=')[1] ?? '', 'base64url').byteLength, 32);
  });

  await t.test('values of forms are text in what follows', async (t) => {
    for (const action of actions.filter((path) => path !== '/sign-out')) {
      const path = fill(action);
      const forms = [...visited.values()].flatMap((document) => document.forms);
      const names = forms
        .filter((form) => form.method === 'post' && isPath(action, form.path))
        .flatMap(({ fields }) => Object.keys(fields));
      const values = Object.fromEntries(names.map((name) => [name, attack(name)]));
      for (const fields of [values, explainedLine(values)])
        t.same(
          (await crawler.inspect(await crawler.submit(path, { ...fields, _csrf: csrf }))).problems,
          [],
          action,
        );
    }
  });

  await t.test('every response has the headers against foreign scripts and frames', async (t) => {
    await crawler.send('/nothing');
    for (const [asset] of (await crawler.send('/')).text.matchAll(/\/assets\/[^"]+/g))
      await crawler.send(asset);
    const statuses = new Set(crawler.answers.map(({ status }) => status));
    for (const status of [200, 303, 400, 403, 404, 415]) t.ok(statuses.has(status), `a response ${status}`);
    const policy = `default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self' ${suite.auth.url}; frame-ancestors 'none'; base-uri 'none'`;
    const expected = {
      'content-security-policy': policy,
      'x-frame-options': 'DENY',
      'x-content-type-options': 'nosniff',
    };
    const missing = crawler.answers.filter(({ headers }) =>
      Object.entries(expected).some(([name, value]) => headers.get(name) !== value),
    );
    t.same(
      missing.map(({ path, status }) => `${path} ${status}`),
      [],
    );
    const stored = crawler.answers.filter(
      ({ headers, path }) => headers.get('cache-control') !== 'no-store' && !path.startsWith('/assets/'),
    );
    t.same(
      stored.filter(({ status }) => status === 200).map(({ path }) => path),
      [],
      'no page is kept by the browser',
    );
  });
});

/** Opens all pages that links and the registry lead to. */
async function visitAll(t: Test, crawler: Crawler, visited: Map<string, InspectedDocument>): Promise<void> {
  const perRoute = new Map<string, number>();
  const visit = async (path: string): Promise<void> => {
    const route = routes.find((one) => isPath(one, path));
    const known = perRoute.get(route ?? '') ?? 0;
    if (route === undefined || visited.has(path) || (known >= maxPerRoute && !isPlanted(path))) return;
    perRoute.set(route, known + 1);
    const document = await crawler.inspect(await crawler.send(path));
    t.same(document.problems, [], path);
    visited.set(path, document);
    for (const link of document.links) await visit(link);
  };
  for (const route of routes.filter((one) => !one.includes(':'))) await visit(route);
  for (const route of routes.filter((one) => one.includes(':')))
    await visit(fillRoute(route, [...visited.keys()]));
  const text = [...visited.values()].map((document) => document.text).join('\n');
  t.same(
    places.filter((place) => !text.includes(marker(place))),
    [],
    'each attack is seen as text',
  );
}

const isPlanted = (path: string) => path.includes(plantedId) || path.includes('planted');

/** The path of a route: the parameters are those of a planted row whose page was opened. */
function fillRoute(route: string, visited: readonly string[]): string {
  const path =
    visited.find((one) => isPath(route, one) && isPlanted(one)) ?? visited.find((one) => isPath(route, one));
  if (path !== undefined) return path.replace(/\?.*/, '');
  const parent = route.replace(/\/[^/]+$/, '');
  if (!parent.includes(':')) return route.replaceAll(/:\w+/g, plantedId);
  return `${fillRoute(parent, visited)}${route.slice(parent.length).replace(/:\w+/, plantedId)}`;
}

/** A line of an access log is read only in its format. */
function explainedLine(values: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const line = `[2026-11-28T12:00:00.000Z] "GET /${attack('line').replaceAll(' ', '+').replaceAll('"', '%22')} HTTP/1.1" 403 UAEX 0 9 1 - "10.0.0.1" "${attack('agent').replaceAll('"', '')}" "1" "api.example.com" "-"`;
  return { ...values, line };
}

/** Sends a request that \`fetch\` cannot. */
function sendRaw(url: string, request: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname, () => socket.end(`${request}\r\nConnection: close\r\n\r\n`));
  let text = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  socket.on('end', () => resolve(text)).on('error', reject);
  return promise;
}
