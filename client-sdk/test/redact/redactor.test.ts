import t from 'tap';
import { createRedactor } from '../../src/redact/redactor.ts';

const redactor = createRedactor();

const texts: readonly [name: string, text: string, masked: string][] = [
  ['JSON', '{"access_token":"x","a":1}', '{"access_token":"[FILTERED]","a":1}'],
  ['JSON with camelCase keys', '{"accessToken":"x"}', '{"accessToken":"[FILTERED]"}'],
  [
    'JSON whose secret is no string',
    '{"code":{"a":[1]},"password":12}',
    '{"code":"[FILTERED]","password":"[FILTERED]"}',
  ],
  ['JSON in arrays', '[{"token":"x"}]', '[{"token":"[FILTERED]"}]'],
  ['a form', 'a=1&client_secret=x%20y', 'a=1&client_secret=[FILTERED]'],
  ['JSON cut short', '{"a":1,"access_token":"abc', '{"a":1,"access_token":"[FILTERED]"'],
  ['prose', 'got code=abc and id_token=def.', 'got code=[FILTERED] and id_token=[FILTERED]'],
  ['plain prose', 'nothing to hide', 'nothing to hide'],
];
for (const [name, text, masked] of texts) {
  t.test(`${name} is masked by the names in it`, async (t) => t.equal(redactor.text(text), masked));
}

const names = [
  'access_token',
  'refreshToken',
  'client_assertion',
  'subject_token',
  'device_code',
  'code_verifier',
  'password',
];
for (const name of names) t.test(`${name} is a secret`, async (t) => t.ok(redactor.isSecretName(name)));

t.test('error, scope and token_type are not', async (t) => {
  for (const name of ['error', 'scope', 'token_type', 'expires_in', 'state'])
    t.notOk(redactor.isSecretName(name));
});

t.test('URLs lose the secrets of query and fragment and nothing else', async (t) => {
  t.equal(
    redactor.url('https://a.test/cb?code=x&state=s#access_token=y&a=1'),
    'https://a.test/cb?code=[FILTERED]&state=s#access_token=[FILTERED]&a=1',
  );
  t.equal(redactor.url('https://a.test/a?b#c'), 'https://a.test/a?b#c');
});

t.test('headers that carry credentials are masked whole, in any case', async (t) => {
  for (const name of ['Authorization', 'cookie', 'Set-Cookie', 'DPoP'])
    t.equal(redactor.header(name, 'x'), '[FILTERED]');
  t.equal(redactor.header('accept', 'x'), 'x');
});

t.test('masking neither changes what it is given nor is fooled by __proto__', async (t) => {
  const value = Object.freeze({ token: 'x', a: 1 });
  t.same(redactor.value(value), { token: '[FILTERED]', a: 1 });
  t.same(redactor.text('{"__proto__":{"token":"x"}}'), '{"__proto__":{"token":"[FILTERED]"}}');
});

t.test('long text of any shape is masked in time', async (t) => {
  // Not by the clock: others may have the processor meanwhile.
  const before = process.cpuUsage();
  for (const unit of ['"', 'a=', '{"a":', '\\"', 'a&', '=']) redactor.text(unit.repeat(20_000));
  const { user, system } = process.cpuUsage(before);
  t.ok(user + system < 2_000_000, `${user + system} µs`);
});
