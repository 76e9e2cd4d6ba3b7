import { once } from 'node:events';
import t from 'tap';
import { Client, type ClientHooks, type ClientOptions } from '../src/index.ts';
import { createRetryPolicy } from '../src/retry.ts';
import { createAuthorizationServer } from '../src/testing.ts';
import { memoryTokenStore, TokenManager } from '../src/token-manager.ts';

const names = ['onRequest', 'onResponse', 'onError', 'onRetry', 'onRefresh', 'onRevoke'] as const;

const failures: Readonly<Record<string, () => unknown>> = {
  'a hook that throws': () => {
    throw new Error('the hook is broken');
  },
  'a hook that rejects': async () => {
    await Promise.reject(new Error('the hook is broken'));
  },
};

function brokenHooks(fail: () => unknown): ClientHooks {
  return Object.fromEntries(names.map((name) => [name, fail]));
}

/**
 * A server that revokes the grant of a refresh token that comes a second time, and a client that
 * retries.
 */
function start(options: ClientOptions<true>) {
  const server = createAuthorizationServer();
  const client = new Client({
    ...{ clientId: 'client', clientSecret: 'secret', site: server.issuer },
    ...{ fetch: server.fetch, now: server.now },
    retry: createRetryPolicy({ baseDelayMs: 1, refreshIsIdempotent: true }),
    ...options,
  });
  return { server, client };
}

for (const [what, fail] of Object.entries(failures)) {
  t.test(`${what} does not affect the call and is reported`, async (t) => {
    const reported = new Set<string>();
    const onHookError = (error: unknown, hook: string) => {
      t.match(error, { message: 'the hook is broken' });
      reported.add(hook);
    };
    const { server, client } = start({ hooks: brokenHooks(fail), onHookError });
    const first = await client.password.getToken('user', 'password');
    const second = await first.refresh();
    const third = await second.refresh();
    t.equal(server.count('token'), 3, 'no request was sent twice');
    t.ok(server.isActive(third.token), 'the grant is not revoked');

    server.inject({ endpoint: 'resource', effect: 'refuse' });
    t.equal((await third.get(`${server.endpoints.resource}/x`)).status, 200, 'a retry still happens');
    t.equal((await third.revoke()).status, 200);
    t.same(reported, new Set(names));
  });

  t.test(`${what} does not lose a token of the TokenManager`, async (t) => {
    const reported = new Set<string>();
    const onHookError = (_error: unknown, hook: string) => void reported.add(hook);
    const { server, client } = start({ hooks: brokenHooks(fail), onHookError });
    const token = await client.password.getToken('user', 'password');
    const memory = memoryTokenStore();
    const store = {
      get: memory.get,
      set: (...args: Parameters<typeof memory.set>) => {
        const [, record] = args;
        // Only the renewed token cannot be written.
        const isRenewed = record.token !== undefined && record.token.access_token !== token.token;
        return isRenewed ? Promise.reject(new Error('disk full')) : memory.set(...args);
      },
    };
    await using manager = new TokenManager({ client, token, store, onError: fail as () => void });
    server.advance(3601);
    const renewed = await manager.getToken();
    t.ok(server.isActive(renewed.token));
    t.ok(reported.has('onError'));
  });
}

t.test('a warning handler or logger that throws does not affect the call', async (t) => {
  const reported = new Set<string>();
  const fail = () => {
    throw new Error('broken');
  };
  const { client } = start({
    ...{ onWarning: fail, logger: { info: fail }, debug: true },
    onHookError: (_error, hook) => void reported.add(hook),
  });
  const token = await client.password.getToken('user', 'password', {}, { tokenName: 'refresh_token_2' });
  t.ok(token.refreshToken);
  t.same(reported, new Set(['logger.info', 'onWarning']));
});

t.test('without onHookError the first failure of each hook is a warning of the process', async (t) => {
  const warned = once(process, 'warning');
  const seen: unknown[] = [];
  const listener = (warning: unknown) => void seen.push(warning);
  process.on('warning', listener);
  t.teardown(() => process.off('warning', listener));
  const { client } = start({ hooks: { onRequest: failures['a hook that throws'] as () => void } });
  await client.clientCredentials.getToken();
  await client.clientCredentials.getToken();
  const [warning] = await warned;
  t.match(warning, { name: 'OAuthClientWarning', code: 'OAUTH_CLIENT_HOOK', message: /`onRequest` failed/ });
  t.match(warning.detail, /the hook is broken/);
  t.equal(seen.length, 1);
});

t.test('an onHookError that throws does not affect the call', async (t) => {
  const warned = once(process, 'warning');
  const fail = () => {
    throw new Error('broken as well');
  };
  const { client } = start({ hooks: { onRequest: fail }, onHookError: fail });
  t.ok((await client.clientCredentials.getToken()).token);
  t.match((await warned)[0], { message: /`onHookError` failed/ });
});

t.test('hooks are methods of the object given', async (t) => {
  class Counter implements ClientHooks {
    requests = 0;
    onRequest() {
      this.requests += 1;
    }
  }
  const hooks = new Counter();
  const { client } = start({ hooks });
  await client.clientCredentials.getToken();
  t.equal(hooks.requests, 1);
});

t.test('onRequest and clientAuth that throw end the call, and nothing is retried', async (t) => {
  const broken = new Error('no key');
  const fail = () => {
    throw broken;
  };
  const { server, client } = start({ clientAuth: fail });
  await t.rejects(client.clientCredentials.getToken(), { name: 'ConfigurationError', cause: broken });
  const other = start({});
  const options = { onRequest: fail };
  await t.rejects(other.client.clientCredentials.getToken({}, options), { cause: broken, retryable: false });
  t.same([server.count('token'), other.server.count('token')], [0, 0]);
});

t.test('hooks may throw any value', async (t) => {
  const warned = once(process, 'warning');
  const { client } = start({
    hooks: {
      onRequest: () => {
        throw Object.create(null);
      },
    },
  });
  t.ok((await client.clientCredentials.getToken()).token);
  t.match((await warned)[0], { detail: 'object' });
});

t.test('options that must be functions are checked', async (t) => {
  const hooks = { onRequest: 'log' } as never;
  for (const name of ['fetch', 'now', 'retry', 'onWarning', 'onHookError'])
    t.throws(() => start({ [name]: {} }), { name: 'ConfigurationError', message: new RegExp(`\`${name}\``) });
  t.throws(() => start({ hooks }), {
    name: 'ConfigurationError',
    message: /`hooks.onRequest` must be a function/,
  });
});
