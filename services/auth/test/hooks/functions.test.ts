import { decodeJwt } from 'jose';
import postgres from 'postgres';
import t, { type Test } from 'tap';
import type { HookName } from '../../src/config/hook-definitions.ts';
import { signUp, startAuthServer } from '../helpers/auth-server.ts';
import { createMachine, requestToken } from '../helpers/oauth-clients.ts';

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

t.test('function changes authorization details, or rejects them', async (t) => {
  const { server } = await start(
    t,
    {
      hook: 'AUTHORIZATION_DETAILS',
      body: `begin
        if event #>> '{authorization_details,0,amount}' = '11' then
          return jsonb_build_object('error', jsonb_build_object('http_code', 400, 'message', 'Too much'));
        end if;
        return jsonb_set(event, '{authorization_details,0,currency}', '"EUR"'); end`,
    },
    { OAUTH_SERVER_ENABLED: 'true', OAUTH_SERVER_AUTHORIZATION_DETAILS_TYPES: 'payment' },
  );
  const client = await createMachine(server, { authorization_details_types: ['payment'] });
  const grant = { grant_type: 'client_credentials', client_id: client.client_id };
  const request = async (amount: string) => {
    const authorization_details = JSON.stringify([{ type: 'payment', amount }]);
    const form = { ...grant, client_secret: client.client_secret, authorization_details };
    return (await requestToken(server, form)).body;
  };
  const granted = [{ type: 'payment', amount: '10', currency: 'EUR' }];
  t.match(await request('10'), { authorization_details: granted });
  const refused = { error: 'invalid_authorization_details', error_description: 'Too much' };
  t.match(await request('11'), refused);
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
