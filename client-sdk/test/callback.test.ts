import t from 'tap';
import { checkAuthorizationCallback, readCallback } from '../src/authorization.ts';

const transaction = {
  state: 'the-state',
  codeVerifier: 'v'.repeat(43),
  redirectUri: 'https://app.example/cb',
  issuer: 'https://as.example',
};

t.test(
  'a callback gives its code and what the token request must repeat, in whichever form it comes',
  (t) => {
    const query = 'code=c%2B1&state=the-state&iss=https%3A%2F%2Fas.example';
    const url = `https://app.example/cb?${query}`;
    const expected = {
      ...{ code: 'c+1', state: 'the-state', nonce: undefined },
      params: { redirect_uri: 'https://app.example/cb', code_verifier: 'v'.repeat(43) },
    };
    for (const callback of [
      url,
      `${url}#_=_`,
      new URL(url),
      new URLSearchParams(query),
      Object.fromEntries(new URLSearchParams(query)),
      Object.assign(Object.create(null), Object.fromEntries(new URLSearchParams(query))),
      query,
      `?${query}`,
      `/cb?${query}`,
      `https://app.example/cb#${query}`,
      new URL(`https://app.example/cb?x=1#${query}`),
    ]) {
      t.same(checkAuthorizationCallback(callback, transaction), expected);
    }
    t.end();
  },
);

t.test('a transaction without PKCE and redirect URI sends neither', (t) => {
  t.same(checkAuthorizationCallback('code=c&state=s', { state: 's' }), {
    ...{ code: 'c', state: 's', nonce: undefined, params: {} },
  });
  t.end();
});

t.test('a missing, different, shorter or longer state is rejected, also with an error', (t) => {
  for (const state of ['', '&state=', '&state=the-stat', '&state=the-state2', '&state=The-state']) {
    for (const outcome of ['code=c', 'error=access_denied']) {
      t.throws(() => checkAuthorizationCallback(`${outcome}${state}`, transaction), {
        name: 'StateMismatchError',
      });
    }
  }
  t.end();
});

t.test('a response of another issuer is rejected before its code or error is read', (t) => {
  for (const outcome of ['code=c', 'error=access_denied']) {
    const callback = `${outcome}&state=the-state&iss=https%3A%2F%2Fevil.example`;
    const error = {
      name: 'IssuerMismatchError',
      message: /"https:\/\/evil.example"; expected "https:\/\/as.example"/,
    };
    t.throws(() => checkAuthorizationCallback(callback, transaction), error);
  }
  t.end();
});

t.test('a promised issuer must be sent, and must be known', (t) => {
  const options = { issuerRequired: true };
  t.throws(() => checkAuthorizationCallback('code=c&state=the-state', transaction, options), {
    name: 'IssuerMismatchError',
  });
  const unknown = () => checkAuthorizationCallback('code=c&state=s&iss=x', { state: 's' }, options);
  t.throws(unknown, { name: 'ConfigurationError', message: /set the client's issuer/ });
  t.end();
});

t.test('server errors include description and URI', (t) => {
  const callback =
    'error=access_denied&error_description=No+thanks&error_uri=https%3A%2F%2Fas.example%2Fe&state=the-state';
  t.throws(() => checkAuthorizationCallback(callback, transaction), {
    name: 'AuthorizationResponseError',
    message: 'access_denied: No thanks',
    code: 'access_denied',
    description: 'No thanks',
    uri: 'https://as.example/e',
  });
  t.end();
});

t.test('callbacks without code and error, or with repeated parameters, are rejected', (t) => {
  for (const callback of [
    'state=the-state',
    'state=the-state&code=',
    'state=the-state&code=a&code=b',
    'state=the-state&state=the-state&code=a',
    'state=the-state&code=a&iss=https%3A%2F%2Fas.example&iss=x',
  ]) {
    t.throws(() => checkAuthorizationCallback(callback, transaction), { name: 'ParseError' }, callback);
  }
  t.throws(() => checkAuthorizationCallback('state=the-state&response=jwt', transaction), {
    message: /JARM/,
  });
  t.throws(() => checkAuthorizationCallback('state=&code=c', { state: '' }), { name: 'ConfigurationError' });
  t.end();
});

t.test('completing without a transaction is rejected', (t) => {
  t.throws(() => checkAuthorizationCallback('code=c&state=s', undefined), { name: 'StateMismatchError' });
  t.end();
});

t.test('a plain object with a repeated or nested parameter is rejected like a URL with it', (t) => {
  const code = { code: 'c', state: 'the-state' };
  t.throws(() => checkAuthorizationCallback({ ...code, code: ['c', 'd'] }, transaction), {
    name: 'ParseError',
    message: /`code` more than once/,
  });
  t.throws(() => checkAuthorizationCallback({ ...code, code: { a: 'c' } }, transaction), {
    name: 'ParseError',
    message: /neither `code` nor `error`/,
  });
  t.throws(() => checkAuthorizationCallback({ code: 'c', state: { a: 's' } }, transaction), {
    name: 'StateMismatchError',
  });
  t.end();
});

t.test('parameters named like members of a request do not make one', async (t) => {
  const query = { code: 'c', state: 'the-state', url: '?code=evil&state=the-state', method: 'GET' };
  t.equal((await readCallback(query)).get('code'), 'c');
});
