import t from 'tap';
import {
  AccessToken,
  Client,
  type ClientOptions,
  TokenUnavailableError,
  type WarningEvent,
} from '../../src/index.ts';
import { recordingFetch, tokenAnswer } from '../support/recording-fetch.ts';

const now = 1_800_000_000;

function makeClient<Throws extends boolean = true>(options: ClientOptions<Throws>, answer = tokenAnswer()) {
  const { fetch } = recordingFetch(answer);
  const shared = { clientId: 'id', clientSecret: 'x', site: 'https://as.test', fetch, now: () => now };
  return new Client({ ...shared, ...options });
}

for (const expires_in of ['soon', '', '1h', '3600s', '0x10', 'NaN', '12abc', true, false, {}, [], [3600]]) {
  t.test(`expires_in ${JSON.stringify(expires_in)} counts as expired`, async (t) => {
    const warnings: WarningEvent[] = [];
    const onWarning = (event: WarningEvent) => void warnings.push(event);
    const client = makeClient({ onWarning }, tokenAnswer({ expires_in }));
    const token = await client.clientCredentials.getToken();
    t.equal(token.expires, true);
    t.equal(token.expired(), true);
    t.equal(token.expiresIn, undefined);
    t.ok(warnings.some(({ code }) => code === 'expires_in_invalid'));
    const fields = { access_token: 'at', expires_in };
    t.equal(AccessToken.fromHash(client, fields).expired(), true);
    t.equal(AccessToken.fromHash(client, { access_token: 'at', expires_at: expires_in }).expired(), true);
  });
}

for (const [expires_in, expected] of [
  [60, now + 60],
  ['60', now + 60],
  [' 60 ', now + 60],
  ['60.9', now + 60.9],
  [-5, now - 5],
  [0, undefined],
  ['0', undefined],
  [null, undefined],
] as const) {
  t.test(`expires_in ${JSON.stringify(expires_in)} is a number, or none`, async (t) => {
    const token = await makeClient({}, tokenAnswer({ expires_in })).clientCredentials.getToken();
    t.equal(token.expiresAt, expected);
  });
}

t.test('with throwOnError false, fromHash and fromForm return an empty token', async (t) => {
  const strict = makeClient({});
  const lenient = makeClient({ throwOnError: false });
  for (const make of [
    (client: Client<boolean>) => AccessToken.fromHash(client, { a: 1 }),
    (client: Client<boolean>) => AccessToken.fromForm(client, 'a=1'),
    (client: Client<boolean>) => new AccessToken(client, ''),
  ]) {
    t.throws(() => make(strict), TokenUnavailableError);
    const token = make(lenient);
    t.equal(token.token, '');
    await t.rejects(token.get('/x'), { name: 'TokenUnavailableError', message: 'there is no access token' });
  }
});

t.test('a token request never returns an empty token, even with throwOnError false', async (t) => {
  for (const fields of [{ access_token: undefined }, { access_token: {} }, { access_token: '' }]) {
    const client = makeClient({ throwOnError: false }, tokenAnswer(fields));
    t.match(await client.clientCredentials.getToken(), { ok: false });
  }
  const client = makeClient({ throwOnError: false });
  const named = await client.clientCredentials.getToken({}, { tokenName: 'another' });
  t.match(named, { ok: false, error: { name: 'TokenResponseError' } });
});

for (const tokenName of ['customToken', 'custom_token', 'CustomToken', 'custom-token']) {
  t.test(`tokenName ${tokenName} matches snake_case keys, also after storing`, async (t) => {
    const client = makeClient({}, tokenAnswer({ customToken: 'custom' }));
    const token = await client.clientCredentials.getToken({}, { tokenName });
    t.equal(token.token, 'custom');
    t.equal(token.param('custom_token'), undefined, 'it is no further field');
    t.equal(AccessToken.fromHash(client, token.toStored()).token, 'custom');
  });
}

t.test('with keys preserved, tokenName is the key as it is', async (t) => {
  const client = makeClient({ keyCase: 'preserve' }, tokenAnswer({ customToken: 'custom' }));
  t.equal((await client.clientCredentials.getToken({}, { tokenName: 'customToken' })).token, 'custom');
});
