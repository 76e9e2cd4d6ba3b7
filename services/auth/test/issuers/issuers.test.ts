import { createLogger } from '@tollgate/kit/logger';
import type { IssuerDefinition } from '@tollgate/policies/routes-file/issuer';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { fakeClock } from '@tollgate/testkit/fake-clock';
import t, { type Test } from 'tap';
import type { LoadedKeys } from '../../src/issuers/discovery.ts';
import { IssuerKeys } from '../../src/issuers/issuer-keys.ts';
import { Issuers } from '../../src/issuers/issuers.ts';
import { startTokenIssuer, type TokenIssuer, type TokenIssuerOptions } from '../helpers/token-issuer.ts';
import { startIssuers } from '../helpers/trusted-issuers.ts';

async function start(t: Test, options: TokenIssuerOptions = {}) {
  const clock = fakeClock(Date.now());
  const idp = await startTokenIssuer(t, { nowMs: clock.nowMs, ...options });
  const trusted = startIssuers(entry('idp', idp), { clock });
  t.teardown(() => trusted.issuers.stop());
  return { idp, ...trusted };
}

const entry = (name: string, { issuer }: TokenIssuer): string =>
  `  - { name: ${name}, issuer: "${issuer}", audiences: [orders] }\n`;

const failed = 'failed to load the keys of an issuer, keeping the last ones';

const jwksRequests = ({ requests }: TokenIssuer): number =>
  requests.filter((path) => path === '/jwks').length;

t.test('a token is verified once, and cached until it expires', async (t) => {
  const { idp, ask, clock } = await start(t);
  const token = await idp.sign();
  t.equal(await ask(token), 'accepted idp|ada');
  t.equal(await ask(token), 'cached idp|ada');
  clock.advance(299_000);
  t.equal(await ask(token), 'cached idp|ada');
  clock.advance(1_000);
  t.equal(await ask(token), 'token is expired');
});

t.test('keys are loaded at the start, without a request', async (t) => {
  const { idp, issuers, timers } = await start(t);
  await awaitUntil(() => timers.length === 1, { what: 'the next load is planned' });
  t.same([timers[0]?.delayMs, jwksRequests(idp)], [600_000, 1]);
  const result = issuers.verify(await idp.sign(), 100);
  t.notOk(result instanceof Promise, 'known keys need no waiting');
  t.match(result, { ok: true });
});

t.test('a path is part of the issuer', async (t) => {
  const { idp, ask } = await start(t, { path: '/realms/shop' });
  t.equal(await ask(await idp.sign()), 'accepted idp|ada');
  t.equal(
    await ask(await idp.sign({ iss: idp.issuer.replace('/realms/shop', '') })),
    'not of another issuer',
  );
});

t.test('metadata of RFC 8414 are found, and those of another issuer are refused', async (t) => {
  const idp = await startTokenIssuer(t, { path: '/as' });
  const metadata = { issuer: idp.issuer, jwks_uri: idp.issuer.replace('/as', '/jwks') };
  idp.publish('/as/.well-known/openid-configuration', undefined);
  idp.publish('/.well-known/oauth-authorization-server/as', metadata);
  const { ask, issuers } = startIssuers(entry('idp', idp));
  t.teardown(() => issuers.stop());
  t.equal(await ask(await idp.sign()), 'accepted idp|ada');

  const other = await startTokenIssuer(t);
  other.publish('/.well-known/openid-configuration', { ...metadata, issuer: `${other.issuer}/` });
  const refused = startIssuers(entry('idp', other));
  t.teardown(() => refused.issuers.stop());
  t.match(await refused.ask(await other.sign()), /^unavailable/);
  t.match(refused.log, [
    { problem: `the metadata are those of the issuer ${other.issuer}/, expected ${other.issuer}` },
  ]);
});

t.test('a new key is loaded at once for its first token, and then once per cooldown', async (t) => {
  const { idp, ask, clock } = await start(t);
  t.equal(await ask(await idp.sign()), 'accepted idp|ada');
  const before = await idp.sign({ sub: 'bob' });
  await idp.rotate('key-2');
  const after = await idp.sign();
  t.equal(await ask(after), 'accepted idp|ada');
  t.equal(jwksRequests(idp), 2);
  t.equal(await ask(before), 'no key has the kid of the token', 'its key was withdrawn');
  for (let second = 0; second < 60; second += 1) {
    clock.advance(1_000);
    await ask(await idp.sign({}, { kid: `invented-${second}` }));
  }
  t.equal(jwksRequests(idp), 4, 'a client cannot cause more than two loads a minute');
});

t.test('a token that was accepted is rejected once its key is withdrawn', async (t) => {
  const { idp, ask, timers } = await start(t);
  const token = await idp.sign();
  await ask(token);
  await idp.rotate('key-2');
  timers[0]?.run();
  await awaitUntil(async () => (await ask(token)) !== 'cached idp|ada', { what: 'the new keys' });
  t.equal(await ask(token), 'no key has the kid of the token');
});

t.test('an issuer that publishes no keys withdraws all of them', async (t) => {
  const { idp, ask, timers } = await start(t);
  const token = await idp.sign();
  await ask(token);
  idp.publish('/jwks', { keys: [] });
  timers[0]?.run();
  await awaitUntil(async () => (await ask(token)) !== 'cached idp|ada', { what: 'the empty key set' });
  t.equal(await ask(token), 'no key has the kid of the token');
});

t.test('while the issuer is down known keys verify, and unknown ones are unavailable', async (t) => {
  const { idp, ask, timers, log, registry } = await start(t);
  await ask(await idp.sign());
  idp.become('down');
  timers[0]?.run();
  await awaitUntil(() => log.some((line) => line['@message'] === failed), { what: 'the failed load' });
  t.match(log.at(-1), { issuer: 'idp', problem: 'the response has status 503', has_keys: true });
  t.match(await registry.metrics(), 'auth_issuer_keys_current{issuer="idp"} 0');
  t.equal(await ask(await idp.sign({ sub: 'bob' })), 'accepted idp|bob');
  t.match(await ask(await idp.sign({}, { kid: 'key-2' })), /^unavailable: the issuer cannot be reached/);
  t.match(await ask(await idp.sign({}, { kid: 'key-2' })), /^unavailable/, 'within the cooldown, too');
  t.equal(await ask(`${(await idp.sign()).slice(0, -8)}AAAAAAAA`), 'signature is invalid');
  idp.become('up');
  t.ok((timers.at(-1)?.delayMs ?? 0) < 3_000, 'retries soon');
  timers.at(-1)?.run();
  await awaitUntil(() => log.at(-1)?.['@message'] === 'issuer reachable again', { what: 'the issuer' });
  t.match(await registry.metrics(), 'auth_issuer_keys_current{issuer="idp"} 1');
});

t.test('an issuer that is down at the start is used once it is up', async (t) => {
  const idp = await startTokenIssuer(t);
  idp.become('down');
  const { ask, timers, issuers } = startIssuers(entry('idp', idp));
  t.teardown(() => issuers.stop());
  t.match(await ask(await idp.sign()), /^unavailable/);
  idp.become('up');
  await awaitUntil(() => timers.length > 0, { what: 'the next load is planned' });
  timers[0]?.run();
  t.equal(await ask(await idp.sign()), 'accepted idp|ada');
});

t.test('no request waits for an issuer that hangs longer than its own time', async (t) => {
  const { idp, ask } = await start(t);
  await ask(await idp.sign());
  idp.become('slow');
  t.match(
    await ask(await idp.sign({}, { kid: 'key-2' }), 50),
    'unavailable: the issuer did not answer in time',
  );
  t.equal(await ask(await idp.sign({ sub: 'bob' })), 'accepted idp|bob', 'others do not wait');
});

t.test('a hundred first tokens cause one load', async (t) => {
  const { idp, ask } = await start(t);
  const tokens = await Promise.all(Array.from({ length: 100 }, (_, n) => idp.sign({ sub: `user-${n}` })));
  const answers = await Promise.all(tokens.map((token) => ask(token)));
  t.same(
    answers,
    tokens.map((_, n) => `accepted idp|user-${n}`),
  );
  t.equal(jwksRequests(idp), 1);
});

t.test('a token of one issuer is never accepted for another', async (t) => {
  const [a, b] = [await startTokenIssuer(t), await startTokenIssuer(t)];
  const { ask, issuers } = startIssuers(entry('a', a) + entry('b', b));
  t.teardown(() => issuers.stop());
  t.equal(await ask(await a.sign()), 'accepted a|ada');
  t.equal(await ask(await b.sign()), 'accepted b|ada', 'the same sub is another user');
  t.equal(await ask(await a.sign({ iss: b.issuer })), 'signature is invalid', 'the kid is the same');
  t.equal(await ask(await b.sign({ iss: 'https://elsewhere.example' })), 'not of another issuer');
});

t.test('issuers with the same keys accept only their own tokens', async (t) => {
  const idp = await startTokenIssuer(t);
  const jwks = `${idp.issuer}/jwks`;
  const list = ['a', 'b'].map(
    (name) =>
      `  - { name: ${name}, issuer: "urn:${name}", jwks_uri: "${jwks}", audiences: [orders-${name}] }\n`,
  );
  const { ask, issuers } = startIssuers(list.join(''));
  t.teardown(() => issuers.stop());
  t.equal(await ask(await idp.sign({ iss: 'urn:a', aud: 'orders-a' })), 'accepted a|ada');
  t.equal(await ask(await idp.sign({ iss: 'urn:b', aud: 'orders-b' })), 'accepted b|ada');
  t.equal(await ask(await idp.sign({ iss: 'urn:a', aud: 'orders-b' })), 'aud is not an accepted audience');
});

t.test('a change of the file keeps the keys of an issuer that did not change', async (t) => {
  const { idp, ask, replace, registry } = await start(t);
  const other = await startTokenIssuer(t);
  const token = await idp.sign();
  await ask(token);
  replace(entry('idp', idp) + entry('other', other));
  t.equal(await ask(token), 'accepted idp|ada', 'claims are mapped again');
  t.equal(await ask(await other.sign()), 'accepted other|ada');
  t.equal(jwksRequests(idp), 1);
  replace(entry('other', other));
  t.equal(await ask(token), 'not of another issuer');
  t.notMatch(await registry.metrics(), 'issuer="idp"');
});

t.test('a change of what a token must have keeps the keys, one of their source does not', async (t) => {
  const { idp, ask, replace } = await start(t);
  await ask(await idp.sign());
  idp.become('down');
  const changed = entry('idp', idp).replace(
    '[orders] }',
    '[billing], tenants: [shop], algorithms: [RS256] }',
  );
  replace(changed);
  t.equal(await ask(await idp.sign({ aud: 'billing', tid: 'shop' })), 'accepted idp|ada');
  t.equal(await ask(await idp.sign({ tid: 'shop' })), 'aud is not an accepted audience');
  t.equal(jwksRequests(idp), 1);
  idp.become('up');
  replace(changed.replace(' }', `, jwks_uri: "${idp.issuer}/other" }`));
  t.match(await ask(await idp.sign({ aud: 'billing', tid: 'shop' })), /^unavailable/);
});

/** An issuer of opaque tokens. */
const definition: IssuerDefinition = {
  ...{ name: 'idp', issuer: 'https://idp.example', discovery: undefined, jwksUri: undefined },
  ...{ audiences: ['orders'], algorithms: ['RS256'], tokenType: 'access', tenants: undefined },
  ...{ caFile: undefined, isKubernetes: false },
  introspection: { endpoint: 'https://idp.example', clientId: 'shop', secretFile: '', cacheMs: 60_000 },
};

/** Options of issuers whose keys are loaded when a test says so. */
const keysOptions = (load: () => Promise<LoadedKeys>) => ({
  ...{ load, metrics: undefined, schedule: () => () => undefined, nowMs: () => 0 },
  logger: createLogger({ level: 'fatal', format: 'json' }),
});

t.test('short tokens do not fill the memory with callers', async (t) => {
  const response = { ok: true, claims: {}, expiresAtMs: 60_000 } as const;
  const issuers = new Issuers<string>({
    ...keysOptions(() => Promise.reject(new Error('not needed'))),
    introspection: { introspect: () => Promise.resolve(response) },
  });
  issuers.replace([{ definition, accept: () => ({ ok: true, caller: 'ada' }) }]);
  const tokens = Array.from({ length: 20_000 }, (_, n) => `token-${n}`);
  for (const token of tokens) await issuers.verify(token, 1_000);
  t.equal(issuers.recall('token-19999', 0), 'ada');
  const known = tokens.filter((token) => issuers.recall(token, 0) !== undefined);
  t.ok(known.length > 2_000 && known.length < 10_000, `${known.length} are cached`);
});

t.test('a token with an unknown key waits for the load that one before it caused', async (t) => {
  const loads: PromiseWithResolvers<LoadedKeys>[] = [];
  const keys = new IssuerKeys(
    definition,
    keysOptions(() => {
      const load = Promise.withResolvers<LoadedKeys>();
      loads.push(load);
      return load.promise;
    }),
  );
  const answer = async (index: number, text: string) => {
    await awaitUntil(() => loads.length > index, { what: `load ${index}` });
    loads[index]?.resolve({ issuer: 'https://idp.example', jwksUri: '', text, keys: [], ignored: [] });
    await awaitUntil(() => keys.current?.text === text, { what: `the keys of load ${index}` });
  };
  keys.start();
  await answer(0, 'first');
  keys.start();
  const seen = [keys.loadUnknown(), keys.loadUnknown()].map((load) => load?.then(() => keys.current?.text));
  await answer(1, 'of a load that began before');
  await answer(2, 'new');
  t.same(await Promise.all(seen), ['new', 'new']);
  t.equal(keys.loadUnknown(), undefined, 'within the cooldown');
});

t.test('a token that was being verified during a change is mapped again', async (t) => {
  const { idp, ask, replace } = await start(t);
  const token = await idp.sign();
  const pending = ask(token);
  replace(entry('idp', idp).replace(' }', ', prefix: none }'));
  t.equal(await pending, 'accepted idp|ada', 'by the rules of its arrival');
  t.equal(await ask(token), 'accepted ada');
});

t.test('hosts with private addresses, plain http and large documents are refused', async (t) => {
  const idp = await startTokenIssuer(t);
  const refused = startIssuers(entry('idp', idp), { privateHosts: [] });
  t.teardown(() => refused.issuers.stop());
  t.match(await refused.ask(await idp.sign()), /^unavailable/);
  t.match(refused.log, [{ problem: /not https|not public/ }]);

  const large = await startTokenIssuer(t);
  large.publish('/jwks', JSON.stringify({ keys: [], padding: 'x'.repeat(600_000) }));
  const tooLarge = startIssuers(entry('idp', large));
  t.teardown(() => tooLarge.issuers.stop());
  t.match(await tooLarge.ask(await large.sign()), /^unavailable/);
  t.match(tooLarge.log, [{ problem: 'the response has more than 524288 bytes' }]);
});

t.test('tokens are counted by issuer and result, from 0', async (t) => {
  const idp = await startTokenIssuer(t);
  const { ask, registry, issuers } = startIssuers(entry('idp', idp));
  t.teardown(() => issuers.stop());
  t.match(await registry.metrics(), 'auth_issuer_tokens_total{issuer="idp",result="rejected"} 0');
  const token = await idp.sign();
  await ask(token);
  await ask(token);
  await ask(await idp.sign({ aud: 'x' }));
  const text = await registry.metrics();
  t.match(text, 'auth_issuer_tokens_total{issuer="idp",result="accepted"} 1');
  t.match(text, 'auth_issuer_tokens_total{issuer="idp",result="rejected"} 1');
  t.match(text, 'auth_issuer_key_loads_total{issuer="idp",result="success"} 1');
});
