import t from 'tap';
import { Redactor } from '../../src/http/redact.ts';
import { snakeCase } from '../../src/key-case.ts';

const redactor = new Redactor();

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

t.test('error, scope and token_type are not secrets', async (t) => {
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

t.test('credential headers are masked completely, case-insensitive', async (t) => {
  for (const name of ['Authorization', 'cookie', 'Set-Cookie', 'DPoP'])
    t.equal(redactor.header(name, 'x'), '[FILTERED]');
  t.equal(redactor.header('accept', 'x'), 'x');
});

t.test('__proto__ is masked like any key', async (t) => {
  t.same(redactor.text('{"__proto__":{"token":"x"}}'), '{"__proto__":{"token":"[FILTERED]"}}');
});

t.test('in the JSON of a response, code is an error or a country', async (t) => {
  const text = '{"code":400,"nested":{"code":"DE"},"access_token":"x"}';
  t.equal(redactor.responseText(text), '{"code":400,"nested":{"code":"DE"},"access_token":"[FILTERED]"}');
  t.equal(redactor.responseText('{"code":"DE","x":'), '{"code":"DE","x":');
  t.equal(redactor.text('{"code":"x"}'), '{"code":"[FILTERED]"}');
});

t.test('in forms and callback URLs of a response, code is a secret', async (t) => {
  t.equal(redactor.responseText('code=x&state=s'), 'code=[FILTERED]&state=s');
  t.equal(
    redactor.responseText('<a href="https://app.test/cb?code=x&a=1">go</a> {"url":"https://a.test/?code=x"'),
    '<a href="https://app.test/cb?code=[FILTERED]&a=1">go</a> {"url":"https://a.test/?code=[FILTERED]"',
  );
});

t.test('code is masked everywhere if it is among the configured names', async (t) => {
  t.equal(new Redactor({ keys: ['code'] }).responseText('{"code":1}'), '{"code":"[FILTERED]"}');
});

t.test('a name after a dot is recognised', async (t) => {
  t.equal(redactor.text('set user.password=x and x.y=z'), 'set user.password=[FILTERED] and x.y=z');
});

/**
 * Texts that made expressions with nested choices look at every rest of the text from every place
 * in it.
 */
const hostile: Readonly<Record<string, (length: number) => string>> = {
  'words and dots': (length) => 'a.'.repeat(length / 2),
  'words and dashes': (length) => 'a-'.repeat(length / 2),
  quotes: (length) => '"'.repeat(length),
  'escaped quotes': (length) => `"${'\\"'.repeat(length / 2)}`,
  'keys without colons': (length) => '"a" '.repeat(length / 4),
  'keys and blanks': (length) => `"token"${' '.repeat(length)}`,
  'colons and blanks': (length) => `"token":${' '.repeat(length)}`,
  'open secrets': (length) => '"token":"'.repeat(length / 9),
  'long words': (length) => 'A'.repeat(length),
  'equal signs': (length) => 'token='.repeat(length / 6),
  'open objects': (length) => '{"a":'.repeat(length / 5),
};

for (const [what, make] of Object.entries(hostile)) {
  t.test(`two million ${what} are masked in linear time`, async (t) => {
    // Prose in front, so that it is neither JSON nor a form.
    const text = `<p> ${make(2_000_000)}`;
    const startedMs = performance.now();
    redactor.responseText(text);
    const durationMs = performance.now() - startedMs;
    // Linear takes about 100 ms, quadratic more than an hour.
    t.ok(durationMs < 10_000, `${durationMs} ms`);
  });
}

t.test('names of a million characters are handled in linear time', async (t) => {
  const name = 'A'.repeat(1_000_000);
  t.equal(snakeCase(`${name}b`), `${'a'.repeat(999_999)}_ab`);
  t.notOk(redactor.isSecretName(name));
});
