import { randomUUID } from 'node:crypto';
import postgres from 'postgres';
import t, { type Test } from 'tap';
import { connect } from '../../src/db/connection.ts';
import { countRows, nextPage } from '../../src/db/paging.ts';
import type { Statement } from '../../src/db/statement.ts';
import { type UserFilter, userListing } from '../../src/users/search.ts';
import { adminToken } from '../helpers/admin.ts';
import { type AuthServer, startAuthServer } from '../helpers/auth-server.ts';
import { allowUnreadableRows, testDatabase } from '../helpers/test-database.ts';

const token = adminToken();

async function list(server: AuthServer, query: string) {
  const { status, headers, body } = await server.call('GET', `/admin/users?${query}`, { token });
  // Parsed boundary: the members of the response.
  const {
    users = [],
    pagination,
    msg,
  } = body as {
    users?: readonly { readonly email: string; readonly phone: string }[];
    pagination?: { readonly next_cursor?: string; readonly has_more: boolean };
    msg?: string;
  };
  const names = users.map(({ email, phone }) => (email || phone).split('@')[0]);
  return { status, headers, names, pagination, msg };
}

/** Users a, b, c and so on, created a day apart; the newest is an anonymous one. */
async function startWithUsers(t: Test, variables: Readonly<Record<string, string>> = {}) {
  const server = await startAuthServer(t, { EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true', ...variables });
  const users = [
    { email: 'a@example.com', email_confirm: true },
    { email: 'b@example.com', ban_duration: '9000h', role: 'editor', app_metadata: { plan: 'gold' } },
    { phone: '+49 151 1', phone_confirm: true },
  ];
  for (const body of users) await server.call('POST', '/admin/users', { token, body });
  await server.call('POST', '/signup', { body: {} });
  const sql = postgres(server.databaseUrl, { max: 1 });
  t.teardown(() => sql.end());
  await sql`update auth.users set created_at = '2026-01-01'::timestamptz
    + interval '1 day' * array_position(array['a@example.com', 'b@example.com', ''], coalesce(email, ''))`;
  await sql`update auth.users set created_at = '2026-01-09', email = 'anonymous@example.com' where is_anonymous`;
  await sql`update auth.users set last_sign_in_at = '2026-02-01' where email = 'a@example.com'`;
  await sql`insert into auth.identities (user_id, provider, provider_id, identity_data, created_at, updated_at)
    select id, 'google', '1', '{}', now(), now() from auth.users where email = 'b@example.com'`;
  return { server, sql };
}

t.test('users are found by email, phone, provider, state and time', async (t) => {
  const { server } = await startWithUsers(t);
  const found = async (query: string) => (await list(server, query)).names;
  t.same(await found('email=A@Example.com'), ['a']);
  t.same(await found('email=a@example'), [], 'exact');
  t.same(await found('email=%25'), []);
  t.same(await found('phone=%2B491511'), ['491511']);
  t.same(await found('phone=+49 151 1'), ['491511'], 'a plus that was not encoded');
  t.same(await found('provider=google'), ['b']);
  t.same(await found('role=editor'), ['b']);
  t.same(await found('plan=gold'), ['b']);
  t.same(await found('plan=gold&provider=email&role=authenticated'), []);
  t.same(await found('provider=email&sort=created_at asc'), ['a', 'b']);
  t.same(await found('confirmed=false'), ['anonymous', 'b']);
  t.same(await found('banned=true'), ['b']);
  t.same(await found('banned=false&anonymous=false'), ['491511', 'a']);
  t.same(await found('anonymous=true'), ['anonymous']);
  t.same(await found('created_from=2026-01-03&created_before=2026-01-04T00:00:00Z'), ['b']);
  t.same(await found('last_sign_in_before=2026-02-01T00:00:01%2B00:00'), ['a']);
  t.same(await found('last_sign_in_from=2026-02-02'), ['anonymous']);
  t.same(await found('email=&phone=&provider=&confirmed=&created_from=&per_page=1'), ['anonymous']);
  for (const bad of ['confirmed=yes', 'created_from=yesterday', 'last_sign_in_before=2026-13-01'])
    t.match(await list(server, bad), { status: 400, msg: bad.split('=')[0] }, bad);
});

t.test('cursors visit each user once, also users of the same time', async (t) => {
  const { server, sql } = await startWithUsers(t);
  await sql`update auth.users set created_at = '2026-01-01T00:00:00.123456Z' where not is_anonymous`;
  for (const sort of ['asc', 'desc']) {
    const names: (string | undefined)[] = [];
    let query = `limit=1&sort=created_at ${sort}`;
    for (let pages = 1; pages <= 4; pages++) {
      const page = await list(server, query);
      names.push(...page.names);
      t.equal(page.pagination?.has_more, pages < 4);
      t.equal(page.headers.get('x-total-count'), null);
      const [, next = ''] = /^<\/admin\/users\?(.*)>; rel="next"$/.exec(page.headers.get('link') ?? '') ?? [];
      t.equal(new URLSearchParams(next).get('cursor'), page.pagination?.next_cursor ?? null);
      query = next;
    }
    t.equal(names.length, 4);
    t.equal(query, '', 'no page follows the last one');
    t.same(new Set(names), new Set(['491511', 'a', 'anonymous', 'b']), sort);
  }
  for (const bad of ['limit=0', 'limit=-1', 'limit=x', 'cursor=x', `cursor=${btoa("2026-01-01' or 1")}`])
    t.match(await list(server, bad), { status: 400, msg: /^Bad Pagination Parameters: / }, bad);
  t.match(await list(server, 'page=1&limit=1'), { pagination: undefined, names: { length: 4 } });
});

t.test('setting of GoTrue makes cursors the default, except for numbered pages', async (t) => {
  const { server } = await startWithUsers(t, { EXPERIMENTAL_CURSOR_PAGINATION_ENABLED: 'true' });
  t.match(await list(server, 'page=&per_page='), { pagination: { has_more: false }, names: { length: 4 } });
  const numbered = await list(server, 'per_page=3');
  t.equal(numbered.pagination, undefined);
  t.equal(numbered.headers.get('x-total-count'), '4');
});

t.test('numbered pages near the end, without total, and past the end', async (t) => {
  const { server } = await startWithUsers(t);
  const page = async (query: string) => {
    const { names, headers } = await list(server, query);
    return [names.join(' '), headers.get('x-total-count'), headers.get('link')];
  };
  const link = (number: number, rel: string, query: string) =>
    `</admin/users?page=${number}&${query}>; rel="${rel}"`;
  const [first, ...others] = await Promise.all(
    [1, 2, 3, 4].map((number) => page(`page=${number}&per_page=1&sort=created_at asc`)),
  );
  const query = 'per_page=1&sort=created_at+asc';
  t.same(first, ['a', '4', `${link(2, 'next', query)}, ${link(4, 'last', query)}`]);
  t.same(
    others.map(([names]) => names),
    ['b', '491511', 'anonymous'],
  );
  t.same(await page('page=2&per_page=3'), ['a', '4', link(2, 'last', 'per_page=3')]);
  t.match(await page('page=3&per_page=3'), ['', '4']);
  const uncounted = 'per_page=3&total=false';
  t.same(await page(uncounted), ['anonymous 491511 b', null, link(2, 'next', uncounted)]);
  t.same(await page(`page=2&${uncounted}`), ['a', null, null]);
  t.match(await list(server, 'total=no'), { status: 400, msg: 'total must be true or false' });
});

t.test('users are found by how email, phone or name starts', async (t) => {
  const { server, sql } = await startWithUsers(t);
  await sql`update auth.users set raw_user_meta_data = '{"full_name":"Ada Lovelace"}' where email like 'b@%'`;
  const long = 'x'.repeat(4000);
  await sql`update auth.users set raw_user_meta_data = ${sql.json({ full_name: long })} where is_anonymous`;
  const found = async (prefix: string) =>
    (await list(server, `prefix=${encodeURIComponent(prefix)}&sort=created_at asc`)).names;
  t.same(await found('A'), ['a', 'b', 'anonymous']);
  t.same(await found('ADA L'), ['b']);
  t.same(await found('lovelace'), []);
  t.same(await found('+49 1'), ['491511']);
  t.same(await found('_'), [], 'no pattern');
  t.same(await found('xx'), ['anonymous'], 'a name that is longer than an entry of an index');
});

t.test('lists use indexes for each filter', async (t) => {
  const { url: databaseUrl } = await testDatabase(t);
  allowUnreadableRows(databaseUrl);
  const sql = connect({ databaseUrl, dbNamespace: 'auth', dbMaxPoolSize: 1 });
  t.teardown(() => sql.end());
  await sql`insert into users (id, instance_id, aud, email, phone, created_at, email_confirmed_at, is_anonymous,
      banned_until, last_sign_in_at, role, raw_app_meta_data, raw_user_meta_data)
    select gen_random_uuid(), '00000000-0000-0000-0000-000000000000', 'a', 'user' || n || '@example.com', n::text,
      now() - n * interval '1 day', case when n % 100 > 0 then now() end, n % 100 = 1,
      case when n % 100 = 2 then now() + interval '1 day' end, now() - n * interval '1 hour',
      case when n % 100 = 3 then 'support' else 'authenticated' end, jsonb_build_object('plan', case when n % 100 = 4 then 'gold' end),
      jsonb_build_object('full_name', 'Name' || n, 'text', repeat('x', 500))
    from generate_series(1, 3000) n`;
  await sql`insert into identities (user_id, provider, provider_id, identity_data)
    select id, case when random() < 0.01 then 'google' else 'email' end, id, '{}' from users`;
  await sql`vacuum analyze`;
  const plan = async (query: Statement<unknown, unknown>) => {
    const lines = await sql.unsafe(`explain ${query.text}`, query.bind({}) as string[], { prepare: false });
    return lines.map((line) => String(line['QUERY PLAN'])).join('\n');
  };
  const page = { order: 'desc', limit: 1, after: undefined } as const;
  const after = { createdAt: '2026-01-01', id: randomUUID() };
  t.match(
    await plan(nextPage(userListing, { aud: 'a' }, page)),
    /Only Scan Backward using tollgate_users_created/,
  );
  t.match(
    await plan(nextPage(userListing, { aud: 'a' }, { ...page, after })),
    /Index Cond: .*ROW\(created_at, id\) < ROW/,
    'a cursor starts in the middle of the index',
  );
  await sql`set enable_sort = off`;
  for (const [filter, index] of [
    [{ aud: 'a', role: 'support' }, 'role_created'],
    [{ aud: 'a', plan: 'gold' }, 'plan_created'],
  ] as const)
    t.match(
      await plan(nextPage(userListing, filter, { ...page, after })),
      new RegExp(`Backward using tollgate_users_${index} .*ROW\\(created_at, id\\) < ROW`, 's'),
      'a page of a rare value reads its own users only',
    );
  await sql`reset enable_sort`;
  const countPlan = (filter: UserFilter) => plan(countRows(userListing, filter));
  await sql`set enable_seqscan = off`;
  await sql`set enable_bitmapscan = off`;
  t.match(await countPlan({ aud: 'a' }), /Only Scan using tollgate_users_(?:role|created)/);
  await sql`reset enable_seqscan`;
  await sql`reset enable_bitmapscan`;
  t.match(
    await plan(nextPage(userListing, { aud: 'a', confirmed: true, banned: false, anonymous: false }, page)),
    /Only Scan Backward using tollgate_users_created/,
    'filters do not read rows',
  );
  for (const [filter, index] of [
    [{ email: 'a@example.com' }, 'users_instance_id_email_idx|tollgate_users_email'],
    [{ phone: '491' }, 'users_phone_key|tollgate_users_phone'],
    [{ provider: 'google' }, 'tollgate_identities_provider'],
    [{ rareProvider: 'google' }, 'tollgate_identities_provider.*users_pkey'],
    [{ aud: 'a', role: 'support' }, 'tollgate_users_role'],
    [{ plan: 'gold' }, 'tollgate_users_plan'],
    [{ confirmed: false }, 'tollgate_users_unconfirmed'],
    [{ banned: true }, 'tollgate_users_banned'],
    [{ anonymous: true }, 'tollgate_users_anonymous|users_is_anonymous_idx'],
    [{ lastSignInFrom: new Date(Date.now() - 86_400_000) }, 'tollgate_users_last_sign_in'],
    [{ prefix: 'user12' }, 'tollgate_users_email.*tollgate_users_phone.*tollgate_users_full_name'],
  ] as const)
    t.match(
      await countPlan(filter),
      new RegExp(`(?:using|on|BitmapOr.*) (?:${index})`, 's'),
      JSON.stringify(filter),
    );
});

t.test('totals of common conditions are exact, and read no rows', async (t) => {
  const { server } = await startWithUsers(t);
  const total = async (query: string) => (await list(server, query)).headers.get('x-total-count');
  const flags = ['', 'true', 'false'];
  for (const confirmed of flags)
    for (const banned of flags)
      for (const anonymous of flags) {
        const query = `confirmed=${confirmed}&banned=${banned}&anonymous=${anonymous}`;
        t.equal(await total(query), String((await list(server, `${query}&limit=50`)).names.length), query);
      }
  t.equal(await total('confirmed=true&filter=a&prefix=a'), '1');
  const { text } = countRows(userListing, { aud: 'a', confirmed: true, banned: false });
  t.notMatch(text, /not null|<= now/, 'only the opposites are read');
});

t.test('total of a provider counts each listed user once', async (t) => {
  const { url: databaseUrl } = await testDatabase(t);
  allowUnreadableRows(databaseUrl);
  const sql = connect({ databaseUrl, dbNamespace: 'auth', dbMaxPoolSize: 1 });
  t.teardown(() => sql.end());
  const users = [
    { aud: 'a', deleted: false, identities: 2 },
    { aud: 'a', deleted: false, identities: 1 },
    { aud: 'a', deleted: false, identities: 0 },
    { aud: 'a', deleted: true, identities: 1 },
    { aud: 'A', deleted: false, identities: 1 },
    { aud: 'b', deleted: true, identities: 1 },
    { aud: null, deleted: false, identities: 1 },
  ];
  for (const { aud, deleted, identities } of users) {
    const id = randomUUID();
    await sql`insert into users (id, aud, created_at, deleted_at) values (${id}, ${aud}, now(), ${deleted ? new Date() : null})`;
    for (let i = 0; i < identities; i++)
      await sql`insert into identities (user_id, provider, provider_id, identity_data)
        values (${id}, 'google', ${randomUUID()}, '{}')`;
  }
  const total = async (filter: UserFilter) => (await countRows(userListing, filter).first(sql, {}))?.total;
  for (const filter of [{ provider: 'google' }, { rareProvider: 'google' }]) {
    t.equal(await total({ aud: 'a', ...filter }), 2);
    t.equal(await total({ aud: 'b', ...filter }), 0);
    t.equal(await total({ aud: 'a', ...filter, confirmed: false }), 2);
    t.equal(await total(filter), 4);
  }
});

t.test('last page of an empty list is 0', async (t) => {
  const { headers } = await (await startAuthServer(t)).call('GET', '/admin/users', { token });
  t.equal(headers.get('link'), '</admin/users?page=0>; rel="last"');
});

t.test('administrator sees which rule allows a redirect, or why none does', async (t) => {
  const server = await startAuthServer(t, {
    URI_ALLOW_LIST: 'http://localhost:8000/*,https://*.example.com/app/**',
  });
  const check = async (to: string) =>
    (await server.call('GET', `/admin/redirect-check?to=${encodeURIComponent(to)}`, { token })).body;
  t.same(await check('https://example.com/done'), {
    to: 'https://example.com/done',
    allowed: true,
    redirects_to: 'https://example.com/done',
    rules: [{ source: 'SITE_URL', rule: 'https://example.com', matches: true }],
  });
  t.match(await check('https://a.example.com/app/x/y?z#f'), {
    allowed: true,
    rules: [{ reason: 'the host differs' }, { matches: false }, { source: 'URI_ALLOW_LIST', matches: true }],
  });
  t.match(await check('http://localhost:8000'), {
    allowed: false,
    redirects_to: 'https://example.com',
    reason: 'it matches neither SITE_URL nor SVC_URI_ALLOW_LIST',
    rules: [{}, { reason: 'the URL ends where the rule requires more characters' }, {}],
  });
  t.match(await check('http://localhost:8000/a/b'), {
    rules: [
      {},
      { reason: 'no match from character 24 on: "/b" (* and ? do not match "." and "/", ** does)' },
      { reason: 'no match from character 5 on: "://localhost:8000/a/b"' },
    ],
  });
  t.match(await check('https://192.0.2.1/'), { reason: 'its host is an IP address, or may be read as one' });
  t.match(await check('http://example.com/'), { rules: [{ reason: 'the scheme differs' }] });
  t.match(await check('javascript:alert(1)'), { reason: 'its scheme is never allowed', rules: [] });
  const missing = await server.call('GET', '/admin/redirect-check', { token });
  t.match(missing, { status: 400, body: { error_code: 'validation_failed', msg: /^to is missing/ } });
});
