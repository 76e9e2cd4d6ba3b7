import { exportJWK, generateKeyPair } from 'jose';
import t from 'tap';
import { ConnectionError } from '../../src/errors.ts';
import { RotatingKeySource } from '../../src/id-token/remote-keys.ts';
import { signJwt } from '../../src/jwt/sign.ts';
import { verifyJwt } from '../../src/jwt/verify.ts';

async function makeIssuer() {
  const server = { keys: [] as object[], loads: 0, failure: undefined as Error | undefined };
  const clock = { now: 1_800_000_000 };
  const keys = new RotatingKeySource({
    async load() {
      server.loads += 1;
      if (server.failure !== undefined) throw server.failure;
      return { keys: server.keys };
    },
    now: () => clock.now,
  });
  const addKey = async (keyId: string) => {
    const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true });
    server.keys = [{ ...(await exportJWK(publicKey)), kid: keyId }];
    return await signJwt({ sub: keyId }, { algorithm: 'ES256', key: privateKey, keyId });
  };
  return { server, clock, addKey, verify: (jwt: string) => verifyJwt(jwt, { keys, algorithms: ['ES256'] }) };
}

t.test('the key set is loaded once and used until it is old', async (t) => {
  const { server, clock, addKey, verify } = await makeIssuer();
  const jwt = await addKey('k1');
  t.equal(server.loads, 0, 'nothing is loaded before it is wanted');
  await verify(jwt);
  clock.now += 599;
  await verify(jwt);
  t.equal(server.loads, 1);
  clock.now += 1;
  await verify(jwt);
  t.equal(server.loads, 2);
});

t.test('fifty verifications at once load the key set once', async (t) => {
  const { server, addKey, verify } = await makeIssuer();
  const jwt = await addKey('k1');
  await Promise.all(Array.from({ length: 50 }, () => verify(jwt)));
  t.equal(server.loads, 1);
});

t.test('an unknown kid reloads the key set at once, and then once per cooldown', async (t) => {
  const { server, clock, addKey, verify } = await makeIssuer();
  await verify(await addKey('k1'));
  t.same((await verify(await addKey('k2'))).claims, { sub: 'k2' });
  t.equal(server.loads, 2, 'rotated right after a load');
  const again = await addKey('k3');
  await t.rejects(verify(again), { name: 'JwtError', reason: 'key_not_found' });
  t.equal(server.loads, 2, 'within the cooldown');
  clock.now += 30;
  t.same((await verify(again)).claims, { sub: 'k3' });
  t.equal(server.loads, 3);
});

t.test('a key replaced under the same kid is reloaded when a signature fails', async (t) => {
  const { clock, addKey, verify } = await makeIssuer();
  await verify(await addKey('k1'));
  const replaced = await addKey('k1');
  clock.now += 31;
  t.same((await verify(replaced)).claims, { sub: 'k1' });
});

t.test('forged tokens cause at most one load per cooldown', async (t) => {
  const { server, clock, addKey, verify } = await makeIssuer();
  const forged = await addKey('forged');
  await verify(await addKey('k1'));
  for (let second = 0; second < 60; second += 1) {
    clock.now += 1;
    await t.rejects(verify(forged), { name: 'JwtError', reason: 'key_not_found' });
  }
  t.equal(server.loads, 3);
});

t.test('a failed first load is thrown and not cached', async (t) => {
  const { server, addKey, verify } = await makeIssuer();
  const jwt = await addKey('k1');
  server.failure = new ConnectionError('refused');
  await t.rejects(verify(jwt), ConnectionError);
  server.failure = undefined;
  t.same((await verify(jwt)).claims, { sub: 'k1' });
});

t.test(
  'while the issuer is down its last keys serve on, asked for once per cooldown, for an hour',
  async (t) => {
    const { server, clock, addKey, verify } = await makeIssuer();
    const jwt = await addKey('k1');
    await verify(jwt);
    server.failure = new ConnectionError('refused');
    clock.now += 601;
    await verify(jwt);
    clock.now += 29;
    await verify(jwt);
    t.equal(server.loads, 2);
    clock.now += 1;
    await verify(jwt);
    t.equal(server.loads, 3);
    clock.now += 3600;
    await t.rejects(verify(jwt), ConnectionError);
  },
);

t.test('a response that is no key set is a retryable error', async (t) => {
  for (const answer of [null, {}, { keys: {} }, { keys: [1] }, 'keys']) {
    const keys = new RotatingKeySource({ load: async () => answer, now: () => 0 });
    await t.rejects(keys.find({ algorithm: 'ES256', keyId: undefined }), {
      name: 'DiscoveryError',
      retryable: true,
    });
  }
});
