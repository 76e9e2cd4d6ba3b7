import { decodeJwt } from 'jose';
import postgres from 'postgres';
import t, { type Test } from 'tap';
import type { HookName } from '../../src/config/hook-definitions.ts';
import { signUp, startAuthServer } from '../helpers/auth-server.ts';

/** Starts a server with a hook that is a function. `body` is PL/pgSQL. */
async function start(
  t: Test,
  {
    hook,
    body,
    returns = 'jsonb',
  }: { readonly hook: HookName; readonly body: string; readonly returns?: string },
  variables: Readonly<Record<string, string>> = {},
) {
  const server = await startAuthServer(t, {
    [`HOOK_${hook}_ENABLED`]: 'true',
    [`HOOK_${hook}_URI`]: 'pg-functions://postgres/public/the_hook',
    ...variables,
  });
  const sql = postgres(server.databaseUrl, { max: 1, onnotice: () => undefined });
  t.teardown(() => sql.end());
  await sql.unsafe(`create table public.calls (event jsonb);
    create function public.the_hook(event jsonb) returns ${returns} language plpgsql as $$ ${body} $$`);
  return { server, sql };
}

const record = 'insert into public.calls values (event);';
const ada = { email: 'ada@example.com', password: 'correct horse' };

t.test('function replaces claims', async (t) => {
  const { server } = await start(t, {
    hook: 'CUSTOM_ACCESS_TOKEN',
    body: `begin return jsonb_set(event, '{claims,plan}', '"pro"'); end`,
  });
  const { accessToken } = await signUp(server);
  t.equal(decodeJwt(accessToken).plan, 'pro');
});

t.test('error of a function rejects the request and keeps what the function wrote', async (t) => {
  const { server, sql } = await start(t, {
    hook: 'BEFORE_USER_CREATED',
    body: `begin ${record}
      return jsonb_build_object('error', jsonb_build_object('http_code', 403, 'message', 'Closed')); end`,
  });
  t.match(await server.call('POST', '/signup', { body: ada }), {
    status: 403,
    body: { error_code: 'unknown', msg: 'Closed' },
  });
  t.match(await sql`select event -> 'user' ->> 'email' as email from public.calls`, [{ email: ada.email }]);
});

t.test('function without result accepts the request', async (t) => {
  for (const [returns, body] of [
    ['void', `begin ${record} end`],
    ['jsonb', 'begin return null; end'],
    ['json', `begin return '{}'; end`],
  ] as const) {
    const { server } = await start(t, { hook: 'BEFORE_USER_CREATED', body, returns });
    t.equal((await server.call('POST', '/signup', { body: ada })).status, 200, returns);
  }
});

t.test('function runs in a transaction of its own', async (t) => {
  const { server, sql } = await start(
    t,
    {
      hook: 'CUSTOM_ACCESS_TOKEN',
      body: `begin update auth.users set raw_app_meta_data = '{"seen": true}' where id = (event ->> 'user_id')::uuid;
        return event; end`,
    },
    { DB_MAX_POOL_SIZE: '1' },
  );
  const { userId } = await signUp(server);
  t.match(await sql`select raw_app_meta_data as data from auth.users where id = ${userId}`, [
    { data: { seen: true } },
  ]);
});

t.test('function that takes longer than two seconds fails', async (t) => {
  const { server } = await start(t, {
    hook: 'BEFORE_USER_CREATED',
    body: 'begin perform pg_sleep(60); return event; end',
  });
  t.match(await server.call('POST', '/signup', { body: ada }), {
    status: 500,
    body: {
      error_code: 'unexpected_failure',
      msg: 'Failed to reach hook within maximum time of 2.000000 seconds',
    },
  });
});

t.test('function that fails or is missing is an unexpected failure', async (t) => {
  const unexpected = { status: 500, body: { error_code: 'unexpected_failure' } };
  const { server, sql } = await start(t, {
    hook: 'BEFORE_USER_CREATED',
    body: `begin raise exception 'internal detail'; end`,
  });
  const failed = await server.call('POST', '/signup', { body: ada });
  t.match(failed, unexpected);
  t.notMatch(failed.text, 'internal detail');
  t.match(server.logs(), 'internal detail');
  await sql`drop function public.the_hook`;
  t.match(await server.call('POST', '/signup', { body: ada }), unexpected);
});
