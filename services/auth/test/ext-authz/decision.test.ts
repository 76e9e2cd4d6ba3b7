import { createHmac, generateKeyPairSync } from 'node:crypto';
import { createLogger } from '@tollgate/kit/logger';
import { createInvalidPolicy } from '@tollgate/policies/compile/compile';
import { type NamedPolicy, PolicyTable } from '@tollgate/policies/compile/policy-table';
import { parseRouteRules } from '@tollgate/policies/routes-file/parse';
import type { RouteRules } from '@tollgate/policies/routes-file/route-rules';
import { fakeClock } from '@tollgate/testkit/fake-clock';
import t from 'tap';
import { Authorizer, type AuthorizerContext } from '../../src/ext-authz/decision.ts';
import type { IdentityCache, IdentityState } from '../../src/ext-authz/identity-cache.ts';
import type { LimitedCheck, RateLimiter } from '../../src/ext-authz/rate-limiter.ts';
import type { AuthzRequest } from '../../src/ext-authz/request.ts';
import type { AuthzDecision, RateLimitResult } from '../../src/ext-authz/result.ts';
import { signJwt, TokenCache } from '../../src/keys/jwt.ts';
import { parseSigningKeys, type SigningKeys } from '../../src/keys/signing-keys.ts';
import { callerIdentity } from '../helpers/caller.ts';

const clock = fakeClock();
const nowSeconds = clock.nowMs() / 1000;
const userId = '8fba2b4c-1a5b-4bd0-9c6b-2c8f8a3a1111';
const sessionId = '11111111-2222-4333-8444-555555555555';
const secret = 'a secret of tests that has 32 bytes';

function keysOf(jwtSecret: string, jwtKeys = ''): SigningKeys {
  const parsed = parseSigningKeys({ jwtSecret, jwtKeys, jwtKeyId: '' });
  if (!parsed.ok) throw new Error(parsed.expected);
  return parsed.keys;
}

const keys = keysOf(secret);

const claims = {
  sub: userId,
  session_id: sessionId,
  exp: nowSeconds + 3600,
  iat: nowSeconds,
  role: 'authenticated',
  aal: 'aal1',
  is_anonymous: false,
  app_metadata: { plan: 'pro' },
};

const bearer = (more: Readonly<Record<string, unknown>> = {}, by = keys): string =>
  `Bearer ${signJwt({ ...claims, ...more }, by)}`;

const state: IdentityState = {
  role: 'authenticated',
  appMetadata: { plan: 'pro' },
  isAnonymous: false,
  bannedUntil: undefined,
  organization: undefined,
  session: { createdAt: new Date(clock.nowMs()), notAfter: undefined },
};

function rulesOf(text: string): RouteRules {
  const parsed = parseRouteRules(text);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.rules;
}

const rules = rulesOf(`
routes:
  - {path: /public, access: public}
  - {path: /closed, access: deny}
  - {path: /admin/**, roles: [admin, auditor]}
  - {path: /billing, aal: aal2}
  - {path: /cart, anonymous: true}
`);

interface Options {
  /** Undefined: no session check. */
  readonly find?: IdentityCache['find'];
  readonly sessionInactivityTimeoutMs?: number;
  readonly rules?: { readonly current: RouteRules };
  readonly rateLimiter?: Pick<RateLimiter, 'check'>;
  readonly policies?: NonNullable<AuthorizerContext['policies']>;
}

/** An authorizer and its log. */
function startAuthorizer({ find, sessionInactivityTimeoutMs = 0, ...more }: Options = {}) {
  const log: unknown[] = [];
  const logger = createLogger({
    level: 'info',
    format: 'json',
    destination: { write: (line) => void log.push(JSON.parse(line)) },
  });
  const authorizer = new Authorizer({
    rules: more.rules ?? { current: rules },
    policies: more.policies,
    tokens: new TokenCache(),
    issuers: undefined,
    keys,
    rateLimiter: more.rateLimiter,
    identities: find && { find },
    clients: undefined,
    apiKeys: undefined,
    browserSessions: undefined,
    browserUsage: undefined,
    browsers: undefined,
    proofs: { check: async () => ({ ok: false, error: 'invalid_dpop_proof', reason: 'no proof' }) },
    tracing: undefined,
    nowMs: clock.now,
    logger,
    settings: {
      organizationsEnabled: false,
      extAuthzDefaultPlan: 'free',
      jwtAdminRoles: ['service_role'],
      sessionTimeboxMs: 0,
      sessionInactivityTimeoutMs,
      jwtIssuer: '',
      jwtIssuerRequired: false,
      jwtAud: '',
      jwtAudienceRequired: false,
      jwtAudiences: [],
      apiExternalUrl: 'http://localhost:9999',
      jwtSecret: 'a secret for tests',
      extAuthzCookieDomain: '',
      sessionAllowLowAalMs: 0,
      sessionSinglePerUser: false,
    },
  });
  const ask = (
    path: string,
    authorization: string | readonly string[],
    { timeoutMs, ...more }: Partial<AuthzRequest> & { readonly timeoutMs?: number } = {},
  ) =>
    authorizer.authorize(
      {
        method: 'GET',
        path,
        host: 'a.test',
        headers: {},
        authorization: typeof authorization === 'string' ? [authorization] : authorization,
        sourceAddress: '192.0.2.1',
        forwardedFor: [],
        headerNames: [],
        ...more,
      },
      timeoutMs,
    );
  return { ask, log };
}

/** Status and error code. */
function outcome(decision: AuthzDecision | Promise<AuthzDecision>): string {
  if (decision instanceof Promise) return 'pending';
  return decision.allowed ? 'allowed' : `${decision.httpStatus} ${decision.errorCode}`;
}

t.test('a signed-in user is allowed, with identity headers', (t) => {
  const { ask } = startAuthorizer();
  t.same(ask('/anything', bearer(), { headerNames: ['x-user-id', 'accept'] }), {
    allowed: true,
    identity: callerIdentity({ userId, sessionId, plan: 'pro' }),
    headers: {
      set: {
        'x-auth-user-id': userId,
        'x-auth-session-id': sessionId,
        'x-auth-role': 'authenticated',
        'x-auth-plan': 'pro',
        'x-auth-aal': 'aal1',
        'x-auth-anonymous': 'false',
        'x-auth-kind': 'user',
        'x-auth-issuer': 'tollgate',
      },
      remove: [
        'x-auth-key-id',
        'x-auth-client-id',
        'x-auth-org-id',
        'x-auth-org-role',
        'x-auth-scope',
        'x-user-id',
      ],
    },
  });
  t.equal(outcome(ask('/anything', bearer().replace('Bearer', 'bEARER  '))), 'allowed');
  t.equal(outcome(ask('/anything', `${bearer()}\t`)), 'allowed', 'surrounding white space is ignored');
  t.end();
});

t.test('without a token the challenge has no error', (t) => {
  const { ask } = startAuthorizer();
  for (const authorization of [[], '', 'Basic YTpi', 'Bearerx y', 'Digest a="b", c="d"'])
    t.match(ask('/anything', authorization), {
      httpStatus: 401,
      errorCode: 'no_authorization',
      headers: { 'www-authenticate': /^Bearer realm="tollgate"$/ },
    });
  t.end();
});

t.test('several Authorization headers, or a list in one, are rejected even with a valid token', (t) => {
  const { ask } = startAuthorizer();
  const good = bearer();
  for (const authorization of [
    [good, good],
    [good, 'Bearer x'],
    ['Basic YTpi', good],
    ['', good],
    [`${good},${good}`],
    [`${good}, Bearer x`],
    [`${good} x`],
    ['Bearer '],
    ['Bearer'],
    [`${good}"`],
  ])
    t.equal(outcome(ask('/anything', authorization)), '401 bad_jwt', JSON.stringify(authorization));
  t.equal(outcome(ask('/anything', `Basic YTpi, ${good}`)), '401 no_authorization');
  t.end();
});

t.test('an invalid token is rejected with the reason', (t) => {
  const { ask } = startAuthorizer();
  const [header = '', payload = '', signature = ''] = signJwt(claims, keys).split('.');
  const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const signed = (head: unknown, body: unknown): string => {
    const input = `${encode(head)}.${encode(body)}`;
    return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`;
  };
  const publicKey = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey;
  const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString();
  const tokens: Readonly<Record<string, string>> = {
    'another user put in': `${header}.${encode({ ...claims, sub: sessionId })}.${signature}`,
    'another role put in': `${header}.${encode({ ...claims, role: 'admin' })}.${signature}`,
    'no signature': `${header}.${payload}.`,
    'alg none': `${encode({ alg: 'none' })}.${payload}.`,
    'alg none with a signature': signed({ alg: 'none' }, claims),
    'another algorithm': signed({ alg: 'HS512' }, claims),
    'a critical parameter': signed({ alg: 'HS256', crit: ['b64'] }, claims),
    'another key': signJwt(claims, keysOf('another secret that has 32 bytes..')),
    'a public key as secret': signJwt(claims, keysOf(pem)),
    expired: signJwt({ ...claims, exp: nowSeconds }, keys),
    'not valid yet': signJwt({ ...claims, nbf: nowSeconds + 1 }, keys),
    'an end that is no number': signJwt({ ...claims, exp: '9999999999' }, keys),
    'no end': signJwt({ ...claims, exp: undefined }, keys),
    'no end, and no administrator by metadata': signJwt(
      { ...claims, exp: undefined, app_metadata: { role: 'service_role' } },
      keys,
    ),
    'a user that is no UUID': signJwt({ ...claims, sub: "x' or true" }, keys),
    'a user that is no text': signJwt({ ...claims, sub: [userId] }, keys),
    'a session that is no UUID': signJwt({ ...claims, session_id: '../x' }, keys),
    'a session without a user': signJwt({ ...claims, sub: '' }, keys),
    'two parts': `${header}.${payload}`,
    'four parts': `${header}.${payload}.${signature}.x`,
    'no JSON': 'e30.x.y',
    'too long': 'a'.repeat(20_000),
  };
  for (const [what, token] of Object.entries(tokens))
    t.match(
      ask('/anything', `Bearer ${token}`),
      {
        httpStatus: 401,
        errorCode: 'bad_jwt',
        headers: {
          'www-authenticate': /^Bearer realm="tollgate", error="invalid_token", error_description="[^"\\]+"$/,
        },
      },
      what,
    );
  t.end();
});

t.test('a public route requires no token, uses a valid one, and ignores an invalid one', (t) => {
  const { ask } = startAuthorizer();
  t.match(ask('/public', bearer()), { allowed: true, identity: { userId } });
  for (const authorization of [[], 'Bearer x', [bearer(), bearer()], bearer({ exp: 1 })]) {
    const decision = ask('/public', authorization, { headerNames: ['x-auth-user-id', 'x-auth-role'] });
    t.match(decision, { allowed: true, identity: undefined, headers: { set: {} } });
    t.match(decision, { headers: { remove: /x-auth-user-id,.*x-auth-role/ } });
  }
  t.end();
});

t.test('a bound token without a proof is no token on a public route, and 401 on others', async (t) => {
  const { ask } = startAuthorizer();
  for (const authorization of [bearer({ cnf: { jkt: 'key' } }), bearer().replace('Bearer', 'DPoP')]) {
    t.match(await ask('/public', authorization), { allowed: true, identity: undefined });
    t.equal(outcome(await ask('/', authorization)), '401 invalid_dpop_proof');
  }
  for (const jkt of [null, 5, {}])
    t.equal(outcome(await ask('/', bearer({ cnf: { jkt } }))), '401 invalid_dpop_proof');
  for (const cnf of [{}, 'x', null, { 'x5t#S256': 'digest' }, { jkt: 'key', 'x5t#S256': 'digest' }])
    t.equal(outcome(ask('/', bearer({ cnf }))), '401 bad_jwt', JSON.stringify(cnf));
});

t.test('role, assurance level and anonymity are checked after the token', (t) => {
  const { ask } = startAuthorizer();
  t.equal(outcome(ask('/closed', bearer({ role: 'admin' }))), '403 route_denied');
  t.equal(outcome(ask('/closed', [])), '403 route_denied');
  t.equal(outcome(ask('/admin/x', [])), '401 no_authorization');
  t.match(ask('/admin/x', bearer()), {
    httpStatus: 403,
    errorCode: 'role_not_allowed',
    headers: {
      'www-authenticate': /^Bearer realm="tollgate", error="insufficient_scope", error_description="[^"]+"$/,
    },
  });
  for (const role of ['admin', 'auditor']) t.equal(outcome(ask('/admin/x', bearer({ role }))), 'allowed');
  for (const role of ['Admin', 'admin ', '', undefined, ['admin']])
    t.equal(outcome(ask('/admin/x', bearer({ role }))), '403 role_not_allowed', JSON.stringify(role));
  t.equal(outcome(ask('/billing', bearer({ aal: 'aal2' }))), 'allowed');
  t.equal(outcome(ask('/billing', bearer({ aal: 'aal3' }))), 'allowed');
  for (const aal of ['aal1', 'aal9', 'zzz', undefined, 2])
    t.match(ask('/billing', bearer({ aal })), {
      httpStatus: 401,
      errorCode: 'insufficient_aal',
      headers: {
        'www-authenticate':
          /^Bearer realm="tollgate", error="insufficient_user_authentication", error_description="[^"]+", acr_values="aal2"$/,
      },
    });
  t.equal(outcome(ask('/cart', bearer({ is_anonymous: true }))), 'allowed');
  t.equal(outcome(ask('/anything', bearer({ is_anonymous: true }))), '403 anonymous_not_allowed');
  t.equal(
    outcome(ask('/admin/x', bearer({ is_anonymous: true, role: 'admin' }))),
    '403 anonymous_not_allowed',
  );
  t.end();
});

t.test('a token without a user is a service token, or anonymous', (t) => {
  const { ask } = startAuthorizer({ find: () => t.fail('no user to look up') as never });
  const program = { sub: undefined, session_id: undefined };
  t.match(ask('/anything', bearer({ ...program, role: 'service_role', exp: undefined })), {
    allowed: true,
    identity: { userId: undefined, role: 'service_role', isAnonymous: false },
  });
  const ofPage = bearer({ ...program, role: 'anon' });
  t.equal(outcome(ask('/anything', ofPage)), '403 anonymous_not_allowed');
  t.match(ask('/cart', ofPage), { allowed: true, identity: { isAnonymous: true } });
  t.end();
});

t.test('an ambiguous path is rejected before all other checks', (t) => {
  const { ask } = startAuthorizer();
  for (const path of [
    '/public/../admin/x',
    '/public%2f..%2fadmin',
    '//public',
    '/public;/../admin',
    'public',
  ])
    for (const authorization of [[], bearer({ role: 'admin' })])
      t.equal(outcome(ask(path, authorization)), '400 path_not_canonical', path);
  t.equal(
    outcome(ask('/admin;v=1/x', bearer())),
    '400 path_not_canonical',
    'another rule matches without parameters',
  );
  t.equal(outcome(ask('/admin/x;v=1', bearer({ role: 'admin' }))), 'allowed');
  t.equal(outcome(ask('/%61dmin/x', bearer())), '403 role_not_allowed');
  t.equal(outcome(ask('/public?/../admin', [])), 'allowed');
  t.equal(outcome(ask('*', [], { method: 'OPTIONS' })), '401 no_authorization');
  t.end();
});

t.test('the current state of the user overrides the claims', (t) => {
  const known: IdentityState = { ...state, role: 'admin', appMetadata: { plan: 'team' }, isAnonymous: true };
  const { ask } = startAuthorizer({ find: () => known });
  t.match(ask('/cart', bearer({ role: 'x', app_metadata: { plan: 'pro' } })), {
    identity: { role: 'admin', plan: 'team', isAnonymous: true },
  });
  t.match(
    ask('/cart', bearer({ aal: 'aal2' })),
    { identity: { aal: 'aal2' } },
    'the assurance level is that of the token',
  );
  const demoted = startAuthorizer({ find: () => state });
  t.equal(outcome(demoted.ask('/admin/x', bearer({ role: 'admin' }))), '403 role_not_allowed');
  t.end();
});

t.test('tokens of deleted users, banned users and ended sessions are rejected', (t) => {
  const at = clock.nowMs();
  const session = (notAfterMs: number) => ({ createdAt: new Date(at), notAfter: new Date(notAfterMs) });
  const cases: readonly (readonly [what: string, state: IdentityState | undefined, expected: string])[] = [
    ['a user who is gone', undefined, '401 user_not_found'],
    ['a user who is banned', { ...state, bannedUntil: new Date(at + 1) }, '403 user_banned'],
    ['a ban that is over', { ...state, bannedUntil: new Date(at) }, 'allowed'],
    ['a session that has ended', { ...state, session: undefined }, '401 session_not_found'],
    ['a session past its end', { ...state, session: session(at) }, '401 session_expired'],
    ['a session before its end', { ...state, session: session(at + 1) }, 'allowed'],
  ];
  for (const [what, known, expected] of cases) {
    const { ask } = startAuthorizer({ find: () => known });
    t.equal(outcome(ask('/anything', bearer())), expected, what);
    const decision = ask('/public', bearer());
    t.match(decision, { allowed: true });
    const isKnown = 'identity' in decision && decision.identity !== undefined;
    t.equal(isKnown, expected === 'allowed', 'no identity on a public route');
  }
  const { ask } = startAuthorizer({ find: () => ({ ...state, session: undefined }) });
  t.equal(outcome(ask('/anything', bearer({ session_id: undefined }))), 'allowed', 'no session is named');
  t.end();
});

t.test('a token older than the inactivity timeout must be refreshed', (t) => {
  const old = { ...state, session: { createdAt: new Date(0), notAfter: undefined } };
  const { ask } = startAuthorizer({ find: () => old, sessionInactivityTimeoutMs: 60_000 });
  t.equal(outcome(ask('/anything', bearer({ iat: nowSeconds - 59 }))), 'allowed');
  t.equal(outcome(ask('/anything', bearer({ iat: nowSeconds - 60 }))), '401 session_expired');
  t.equal(outcome(ask('/anything', bearer({ iat: undefined }))), '401 session_expired');
  t.end();
});

t.test('users and sessions are looked up by ids in lower case', async (t) => {
  const reads: unknown[] = [];
  const find: IdentityCache['find'] = (...ids) => {
    reads.push(ids);
    return state;
  };
  await startAuthorizer({ find }).ask(
    '/anything',
    bearer({ sub: userId.toUpperCase(), session_id: sessionId.toUpperCase() }),
  );
  await startAuthorizer({ find }).ask('/anything', bearer({ session_id: '' }));
  t.same(reads, [
    [userId, sessionId, undefined],
    [userId, undefined, undefined],
  ]);
});

t.test('an asynchronous decision is the same as a synchronous one', async (t) => {
  const { ask } = startAuthorizer({ find: async () => ({ ...state, role: 'admin' }) });
  const decision = ask('/admin/x', bearer());
  t.equal(outcome(decision), 'pending');
  t.equal(outcome(await decision), 'allowed');
  t.equal(outcome(await ask('/billing', bearer())), '401 insufficient_aal');
  t.equal(outcome(ask('/closed', bearer())), '403 route_denied', 'no lookup for a denied route');
});

t.test('during an outage requests are denied, which is logged once', async (t) => {
  const away = new Error('the database is away');
  const find: readonly IdentityCache['find'][] = [
    () => Promise.reject(away),
    () => {
      throw away;
    },
  ];
  for (const one of find) {
    const { ask, log } = startAuthorizer({ find: one });
    t.match(await ask('/anything', bearer()), {
      allowed: false,
      httpStatus: 503,
      errorCode: 'authorization_unavailable',
      headers: { 'retry-after': '1' },
    });
    t.equal(outcome(await ask('/admin/x', bearer())), '503 authorization_unavailable');
    t.match(await ask('/public', bearer()), { allowed: true, identity: undefined, headers: { set: {} } });
    t.match(log, [
      { level: 'error', '@message': /^failed to read the state of users/, err: { message: away.message } },
    ]);
    t.equal(log.length, 1);
  }
  const later = startAuthorizer({ find: () => Promise.reject(away) });
  await later.ask('/anything', bearer());
  clock.advance(10_000);
  await later.ask('/anything', bearer());
  t.equal(later.log.length, 2, 'again after the interval');
});

t.test('a slow database is treated as an outage before the proxy times out', async (t) => {
  const { ask, log } = startAuthorizer({ find: () => new Promise(() => undefined) });
  t.equal(outcome(await ask('/anything', bearer(), { timeoutMs: 20 })), '503 authorization_unavailable');
  t.match(await ask('/public', bearer(), { timeoutMs: 20 }), { allowed: true, identity: undefined });
  t.equal(log.length, 1);
  t.match(log, [{ err: { detail: /timeout of 20 ms/ } }]);
  const quick = startAuthorizer({ find: async () => state });
  for (const timeoutMs of [60_000, Number.POSITIVE_INFINITY])
    t.equal(outcome(await quick.ask('/anything', bearer(), { timeoutMs })), 'allowed');
});

t.test('an internal error denies the request', (t) => {
  const { ask, log } = startAuthorizer({
    rules: {
      get current(): RouteRules {
        throw new TypeError('a fault');
      },
    },
  });
  t.equal(outcome(ask('/public', [])), '503 authorization_unavailable');
  t.match(log, [{ level: 'error', '@message': /^authorization failed/, err: { message: 'a fault' } }]);
  t.end();
});

t.test(
  'app_metadata sets plan and limit; invalid values are ignored, and logged once per user',
  async (t) => {
    const { ask, log } = startAuthorizer();
    const identity = (appMetadata: unknown, more = {}) =>
      ask('/anything', bearer({ app_metadata: appMetadata, ...more }));
    t.match(identity({ limit: { requests_per_unit: 5, unit: 'hour' } }), {
      identity: { plan: 'free', limit: { requestsPerUnit: 5, unit: 'HOUR' } },
    });
    for (const plan of ['', 7, null, ['pro'], 'x'.repeat(256)])
      t.match(identity({ plan }), { identity: { plan: 'free' } }, JSON.stringify(plan));
    for (const appMetadata of [undefined, null, 'pro', ['pro']])
      t.match(identity(appMetadata), { identity: { plan: 'free', limit: undefined } });
    t.same(log, []);
    for (let round = 0; round < 3; round++)
      t.match(identity({ plan: 'pro', limit: 5 }), {
        allowed: true,
        identity: { plan: 'pro', limit: undefined },
      });
    t.equal(log.length, 1);
    await identity({ limit: 5 }, { sub: sessionId });
    t.match(log, { 1: { '@message': 'ignored limit in app_metadata', user_id: sessionId, reason: /./ } });
  },
);

t.test('only allowed requests of routes with a limit count, with the time that is left', async (t) => {
  const checks: LimitedCheck[] = [];
  const answers: (RateLimitResult | undefined | Error)[] = [
    { code: 'ok', headers: { 'ratelimit-limit': '5' } },
    undefined,
    { code: 'over_limit', headers: { 'retry-after': '9' } },
    { code: 'error', allowed: true },
    { code: 'error', allowed: false },
    new Error('unexpected'),
  ];
  const current = rulesOf(`
routes:
  - {path: /closed, access: deny}
  - {path: /free, limit: []}
  - {path: /admin/**, roles: [admin]}
limit: [[user_id]]
limit_domain: shop
`);
  const rateLimiter: Pick<RateLimiter, 'check'> = {
    check(check) {
      checks.push(check);
      const answer = answers[checks.length - 1];
      if (answer instanceof Error) return Promise.reject(answer);
      return answer && Promise.resolve(answer);
    },
  };
  const { ask, log } = startAuthorizer({ rules: { current }, rateLimiter, find: async () => state });
  for (const path of ['/closed', '/admin/x', '/a/../b']) t.not(outcome(await ask(path, bearer())), 'allowed');
  t.not(outcome(await ask('/', [])), 'allowed');
  t.equal(outcome(await ask('/free', bearer())), 'allowed');
  t.same(checks, []);

  const next = () => ask('/cart', bearer(), { timeoutMs: 1_000 });
  t.match(await next(), { allowed: true, rateLimit: 'ok', responseHeaders: { 'ratelimit-limit': '5' } });
  t.match(checks, [
    { domain: 'shop', limits: [{ keys: ['user_id'] }], rulePath: undefined, identity: { userId } },
  ]);
  t.ok(checks.every(({ timeLeftMs }) => timeLeftMs > 0 && timeLeftMs <= 1_000));
  t.match(await next(), { allowed: true, rateLimit: undefined });
  t.match(await next(), {
    ...{ httpStatus: 429, errorCode: 'over_request_rate_limit', headers: { 'retry-after': '9' } },
    identity: { userId },
  });
  t.match(await next(), { allowed: true, rateLimit: 'error', responseHeaders: undefined });
  t.equal(outcome(await next()), '503 rate_limit_unavailable');
  t.equal(outcome(await next()), '503 authorization_unavailable');
  t.match(log, [{ '@message': 'authorization failed, request denied' }]);
});

t.test('a reload during a check has no part in it', async (t) => {
  const limited = (name: string) => rulesOf(`{limit: [[${name}]], limit_domain: ${name}}`);
  const watched = { current: limited('user_id') };
  const checks: LimitedCheck[] = [];
  const { ask } = startAuthorizer({
    rules: watched,
    rateLimiter: { check: (check) => void checks.push(check) },
    find: async () => {
      watched.current = limited('plan');
      return state;
    },
  });
  await ask('/cart', bearer());
  t.match(checks, [{ domain: 'user_id', limits: [{ keys: ['user_id'] }] }]);
});

t.test('policies that a check had are seen, also the ones that deny it', async (t) => {
  const denying = (name: string, hosts: readonly string[]): NamedPolicy => ({
    ...{ name, createdMs: 0, hosts, policy: createInvalidPolicy(name) },
  });
  const current = new PolicyTable([denying('shop/a', ['a.test']), denying('shop/b', ['b.test'])]);
  const seen: (string | undefined)[] = [];
  const { ask } = startAuthorizer({ policies: { current, see: (name) => void seen.push(name) } });
  t.equal(outcome(ask('/', bearer())), '503 policy_invalid');
  t.equal(outcome(ask('/', bearer(), { host: 'c.test' })), 'allowed', 'without a policy');
  t.same(seen, ['shop/a', undefined]);
});
