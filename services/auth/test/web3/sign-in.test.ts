// Sign-in with a wallet, by the published client library and by requests of an attacker.
import { randomUUID } from 'node:crypto';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { base58 } from '@scure/base';
import { AuthClient } from '@supabase/auth-js';
import { decodeJwt } from 'jose';
import postgres from 'postgres';
import t, { type Test } from 'tap';
import { ethereum } from '../../src/wallets/ethereum.ts';
import { adminToken } from '../helpers/admin.ts';
import { type AuthServer, signedIn, startAuthServer } from '../helpers/auth-server.ts';
import { startHookServer } from '../helpers/hook-server.ts';
import { ethereumAccount, signInMessage, solanaAccount } from '../helpers/wallets.ts';

const minuteMs = 60_000;

async function start(t: Test, variables: Readonly<Record<string, string>> = {}) {
  const server = await startAuthServer(t, {
    EXTERNAL_WEB3_ETHEREUM_ENABLED: 'true',
    EXTERNAL_WEB3_SOLANA_ENABLED: 'true',
    URI_ALLOW_LIST: 'http://localhost:5173/**,https://app.example.net/inside/**',
    ...variables,
  });
  const client = new AuthClient({ url: server.url, autoRefreshToken: false, persistSession: false });
  return { server, client };
}

const grant = ({ call }: AuthServer, body: object) => call('POST', '/token?grant_type=web3', { body });

const rejected = (description: RegExp) => ({
  status: 400,
  body: { error: 'invalid_grant', error_description: description },
});

t.test('client library signs in with wallets, without an email', async (t) => {
  const { server, client } = await start(t);
  const account = ethereumAccount('0x89');
  const options = { url: 'https://example.com/login' };
  const first = await client.signInWithWeb3({ chain: 'ethereum', wallet: account.wallet, options });
  t.equal(first.error, null);
  const id = `web3:ethereum:${account.address}`;
  const data = {
    sub: id,
    custom_claims: {
      address: account.address,
      chain: 'ethereum',
      network: '137',
      domain: 'example.com',
      statement: '',
    },
    email_verified: false,
    phone_verified: false,
  };
  t.match(first.data.user, {
    email: '',
    is_anonymous: false,
    app_metadata: { provider: 'web3', providers: ['web3'] },
    user_metadata: data,
    identities: [{ id, provider: 'web3', identity_data: data }],
  });
  t.match(decodeJwt(first.data.session?.access_token ?? ''), { aal: 'aal1', amr: [{ method: 'web3' }] });

  const withStatement = {
    chain: 'ethereum',
    wallet: account.wallet,
    statement: 'Bonjour !',
    options,
  } as const;
  const again = await client.signInWithWeb3(withStatement);
  t.equal(again.data.user?.id, first.data.user?.id);
  t.match(again.data.user?.identities, { length: 1 });

  const solana = solanaAccount();
  const resources = ['https://example.com/terms'];
  const byMessage = await client.signInWithWeb3({
    chain: 'solana',
    wallet: solana.wallet,
    statement: 'Hello',
    options: { ...options, signInWithSolana: { chainId: 'solana:devnet', nonce: 'abcdefgh', resources } },
  });
  t.equal(byMessage.error, null);
  t.match(byMessage.data.user?.identities, [{ id: `web3:solana:${solana.address}`, provider: 'web3' }]);
  t.match(byMessage.data.user?.user_metadata, {
    custom_claims: { chain: 'solana', network: 'solana:devnet', statement: 'Hello' },
  });
  const message = signInMessage('Solana', solana.address);
  const byText = await client.signInWithWeb3({ chain: 'solana', message, signature: solana.sign(message) });
  t.equal(byText.data.user?.id, byMessage.data.user?.id);

  const { body } = await server.call('GET', '/admin/audit', { token: adminToken() });
  t.match(JSON.stringify(body), /"action":"login"[^}]*"traits":\{"provider":"web3","chain":"solana"/);
});

t.test('all forms of an address are one user', async (t) => {
  const { server } = await start(t);
  const { address, sign } = ethereumAccount();
  const signIn = async (shown: string) => {
    const message = signInMessage('Ethereum', shown);
    return grant(server, { chain: 'ethereum', message, signature: sign(message) });
  };
  const { userId } = signedIn(await signIn(address));
  const upper = await signIn(`0x${address.slice(2).toUpperCase()}`);
  t.match(upper, { status: 200, body: { user: { identities: [{ id: `web3:ethereum:${address}` }] } } });
  t.equal(signedIn(upper).userId, userId);
  const flipped = String(ethereum.otherForms(address)[0]).replace(/[a-f](?=.*[A-F])/, (letter) =>
    letter.toUpperCase(),
  );
  t.equal((await signIn(flipped)).status, 400, 'wrong checksum');
});

t.test('identity that GoTrue stored with a checksum is found', async (t) => {
  const { server } = await start(t);
  const { address, sign } = ethereumAccount();
  const signIn = async () => {
    const message = signInMessage('Ethereum', address, { 'Request ID': String(Math.random()) });
    return grant(server, { chain: 'ethereum', message, signature: sign(message) });
  };
  await signIn();
  const sql = postgres(server.databaseUrl, { max: 1 });
  const stored = `web3:ethereum:${String(ethereum.otherForms(address)[0])}`;
  await sql`update auth.identities set provider_id = ${stored}`;
  t.match(await signIn(), { status: 200, body: { user: { identities: { length: 1, 0: { id: stored } } } } });
  t.match(await sql`select count(*)::int from auth.users`, [{ count: 1 }]);
  await sql.end();
});

t.test('message is accepted once, also by concurrent requests', async (t) => {
  const { server } = await start(t);
  const { address, sign } = ethereumAccount();
  const message = signInMessage('Ethereum', address);
  const signature = sign(message);
  const body = { chain: 'ethereum', message, signature };
  const answers = await Promise.all([1, 2, 3].map(() => grant(server, body)));
  t.same(answers.map(({ status }) => status).sort(), [200, 400, 400]);
  server.clock.advance(9 * minuteMs);
  const withoutPrefix = { ...body, signature: signature.slice(2).toUpperCase() };
  t.match(await grant(server, withoutPrefix), rejected(/already used/), 'the same signature in another form');
  server.clock.advance(2 * minuteMs);
  t.match(await grant(server, body), rejected(/too long ago/));
});

t.test('signature must be the canonical one of the address', async (t) => {
  const { server } = await start(t);
  const { address, sign } = ethereumAccount();
  const message = signInMessage('Ethereum', address);
  const bytes = Buffer.from(sign(message).slice(2), 'hex');
  const { r, s } = secp256k1.Signature.fromBytes(bytes.subarray(0, 64), 'compact');
  const high = new secp256k1.Signature(r, secp256k1.Point.CURVE().n - s).toBytes('compact');
  const negated = Buffer.concat([high, Buffer.from([(bytes.at(-1) ?? 0) === 27 ? 28 : 27])]);
  const wrong = rejected(/not one of the address/);
  t.match(await grant(server, { chain: 'ethereum', message, signature: negated.toString('hex') }), wrong);
  const other = ethereumAccount().sign(message);
  t.match(await grant(server, { chain: 'ethereum', message, signature: other }), wrong);
  const changed = message.replace('Chain ID: 1', 'Chain ID: 10');
  t.match(await grant(server, { chain: 'ethereum', message: changed, signature: sign(message) }), wrong);

  const solana = solanaAccount();
  const text = signInMessage('Solana', solana.address);
  const signature = Buffer.from(solana.sign(text));
  const order = 2n ** 252n + 27742317777372353535851937790883648493n;
  const scalar = BigInt(`0x${Buffer.from(signature.subarray(32)).reverse().toString('hex')}`) + order;
  const larger = Buffer.from(scalar.toString(16).padStart(64, '0'), 'hex').reverse();
  const altered = Buffer.concat([signature.subarray(0, 32), larger]).toString('base64');
  t.match(await grant(server, { chain: 'solana', message: text, signature: altered }), wrong);
  t.match(await grant(server, { chain: 'solana', message: text, signature: signature.toString('base64') }), {
    status: 200,
  });
});

t.test('messages in the envelopes of a Ledger are accepted', async (t) => {
  const { server } = await start(t);
  const { address, signBytes } = solanaAccount();
  const attempt = async (envelope: (message: Buffer) => readonly (string | Uint8Array)[]) => {
    const message = signInMessage('Solana', address, { 'Request ID': randomUUID() });
    const bytes = Buffer.from(message);
    const signed = Buffer.concat([...envelope(bytes).map((part) => Buffer.from(part)), bytes]);
    const signature = Buffer.from(signBytes(signed)).toString('base64');
    return (await grant(server, { chain: 'solana', message, signature })).status;
  };
  const prefix = Buffer.from('\xffsolana offchain\0', 'latin1');
  const length = ({ length }: Buffer) => Uint8Array.of(length % 256, length >> 8);
  const key = base58.decode(address);
  const zeros = Buffer.alloc(32);
  t.equal(await attempt((message) => [prefix, zeros, '\x01\x01', key, length(message)]), 200);
  t.equal(await attempt((message) => [prefix, '\x00', length(message)]), 200, 'older firmware');
  t.equal(await attempt((message) => [prefix, '\x00', length(message.subarray(1))]), 400, 'wrong length');
  t.equal(await attempt(() => [prefix]), 400, 'without the rest of the header');
});

t.test('message for another site or time is rejected', async (t) => {
  const { server } = await start(t);
  const { address, sign } = ethereumAccount();
  const at = (minutes: number) => new Date(server.clock.nowMs() + minutes * minuteMs).toISOString();
  const attempt = async (fields: Readonly<Record<string, string>>) => {
    const message = signInMessage('Ethereum', address, fields);
    return grant(server, { chain: 'ethereum', message, signature: sign(message) });
  };
  const evil = 'https://evil.example/login';
  for (const [fields, description] of [
    [{ origin: 'evil.example', URI: evil }, /another site/],
    [{ origin: 'evil.example' }, /another domain/],
    [{ URI: evil }, /another domain/],
    [{ origin: 'EXAMPLE.com' }, /another domain/],
    [{ origin: 'http://example.com' }, /another domain/],
    [{ URI: 'http://example.com/login' }, /https/],
    [{ origin: 'example.com:444', URI: 'https://example.com:444/' }, /another site/],
    [{ origin: 'evil.example', URI: 'http://localhost:5173/' }, /https/],
    [{ origin: 'localhost:5174', URI: 'http://localhost:5174/' }, /another site/],
    [{ origin: 'app.example.net', URI: 'https://app.example.net/inside/' }, /another site/],
    [{ 'Issued At': at(-11) }, /too long ago/],
    [{ 'Issued At': at(11) }, /too far in the future/],
    [{ 'Expiration Time': at(0) }, /expired/],
    [{ 'Not Before': at(1) }, /not valid yet/],
  ] as const)
    t.match(await attempt(fields), rejected(description), JSON.stringify(fields));
  t.equal((await attempt({ origin: 'localhost:5173', URI: 'http://localhost:5173/a' })).status, 200);
  t.equal((await attempt({ origin: 'https://example.com', 'Issued At': at(9) })).status, 200);
});

t.test('malformed requests are rejected with what is wrong', async (t) => {
  const { server } = await start(t, { EXTERNAL_WEB3_SOLANA_ENABLED: 'false' });
  const { address, sign } = ethereumAccount();
  const message = signInMessage('Ethereum', address);
  const valid = { chain: 'ethereum', message, signature: sign(message) };
  for (const [change, code, reason] of [
    [{ chain: 'solana' }, 'web3_provider_disabled', /^Solana Web3 provider is disabled/],
    [{ chain: 'bitcoin' }, 'web3_unsupported_chain', /ethereum/],
    [{ chain: '__proto__' }, 'web3_unsupported_chain', /ethereum/],
    [{ chain: undefined }, 'web3_unsupported_chain', /ethereum/],
    [{ message: 'short' }, 'validation_failed', /64 to 20480 bytes/],
    [{ message: 'é'.repeat(10_241) }, 'validation_failed', /64 to 20480 bytes/],
    [{ message: 'm'.repeat(64) }, 'validation_failed', /message is not valid: its first line/],
    [{ signature: '0xab' }, 'validation_failed', /130 hexadecimal digits/],
    [{ signature: undefined }, 'validation_failed', /130 hexadecimal digits/],
    [{ signature: [1, 2] }, 'validation_failed', /130 hexadecimal digits/],
    [{ chain: 'solana', signature: [1, 2] }, 'web3_provider_disabled', /^Solana Web3 provider is disabled/],
  ] as const) {
    const { status, body } = await grant(server, { ...valid, ...change });
    t.match({ status, body }, { status: /400|422/, body: { error_code: code, msg: reason } });
  }
  const form = new URLSearchParams({ ...valid, grant_type: 'web3', message: message.replace('1', '2') });
  t.match(
    await server.call('POST', '/token', {
      body: form.toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    }),
    { status: 400, body: { error: /invalid/ } },
  );
});

t.test('hook, limits and disabled sign-up apply', async (t) => {
  const hook = await startHookServer(t);
  const { server } = await start(t, {
    ...hook.variables('BEFORE_USER_CREATED'),
    RATE_LIMIT_HEADER: 'x-client',
    RATE_LIMIT_WEB3: '2',
  });
  const { address, sign } = solanaAccount();
  const signIn = async (client: string) => {
    const message = signInMessage('Solana', address, { 'Request ID': String(Math.random()) });
    return server.call('POST', '/token?grant_type=web3', {
      body: { chain: 'solana', message, signature: Buffer.from(sign(message)).toString('base64url') },
      headers: { 'x-client': client },
    });
  };
  hook.answer({ status: 200, body: { error: { http_code: 403, message: 'Not this wallet' } } }, { body: {} });
  t.match(await signIn('one'), { status: 403, body: { msg: 'Not this wallet' } });
  t.match(hook.last(), { user: { app_metadata: { provider: 'web3' } } });
  t.equal((await signIn('one')).status, 200);
  t.match(await signIn('one'), { status: 429, body: { error_code: 'over_request_rate_limit' } });
  t.equal((await signIn('two')).status, 200);

  const closed = await start(t, { DISABLE_SIGNUP: 'true', DB_DATABASE_URL: server.databaseUrl });
  const known = signInMessage('Solana', address);
  const signature = Buffer.from(sign(known)).toString('base64url');
  t.equal((await grant(closed.server, { chain: 'solana', message: known, signature })).status, 200);
  const newcomer = solanaAccount();
  const unknown = signInMessage('Solana', newcomer.address);
  const answer = await grant(closed.server, {
    ...{ chain: 'solana', message: unknown },
    signature: Buffer.from(newcomer.sign(unknown)).toString('base64url'),
  });
  t.match(answer, { status: 422, body: { error_code: 'signup_disabled' } });
});
