import t from 'tap';
import { convertKeys } from '../src/http/body.ts';
import type { SnakeCase, SnakeKeys } from '../src/key-case.ts';
import { camelView, dump, load, snakeCase } from '../src/key-case.ts';

/** Pairs whose types the compiler works out the same way; it fails where the two differ. */
const vectors = {
  accessToken: 'access_token',
  MiGever: 'mi_gever',
  'a-b_c-d_e-F_G-H': 'a_b_c_d_e_f_g_h',
  'banana-butterCake': 'banana_butter_cake',
  HTTPServer: 'http_server',
  access_token: 'access_token',
  ID: 'id',
  userID: 'user_id',
  oauth2Token: 'oauth2_token',
  'two words': 'two_words',
} as const satisfies { [K in Vector]: SnakeCase<K> };

type Vector =
  | 'accessToken'
  | 'MiGever'
  | 'a-b_c-d_e-F_G-H'
  | 'banana-butterCake'
  | 'HTTPServer'
  | 'access_token'
  | 'ID'
  | 'userID'
  | 'oauth2Token'
  | 'two words';

for (const [key, expected] of Object.entries(vectors)) {
  t.test(`${key} becomes ${expected}, also in its type`, async (t) => t.equal(snakeCase(key), expected));
}

t.test('snakeCase trims blanks, converts double colons to slashes and squeezes underscores', async (t) => {
  t.equal(snakeCase('  a__b '), 'a_b');
  t.equal(snakeCase('Api::UserName'), 'api/user_name');
});

t.test('the converted type includes nested objects and arrays', async (t) => {
  const typed: SnakeKeys<{ accessToken: string; userList: { userName: string }[] }> = {
    access_token: 'at',
    user_list: [{ user_name: 'ada' }],
  };
  t.equal(typed.user_list[0]?.user_name, 'ada');
});

t.test('keys are converted at every depth, values are not', async (t) => {
  const from = JSON.parse('{"userName":"firstName","friendList":[{"userName":1},[{"aB":null}]]}');
  const converted = convertKeys(from, 'snake');
  t.same(converted, { user_name: 'firstName', friend_list: [{ user_name: 1 }, [{ a_b: null }]] });
  t.same(Object.keys(from), ['userName', 'friendList']);
});

for (const keyCase of ['snake', 'preserve'] as const) {
  t.test(`__proto__ and constructor are ordinary keys with keyCase ${keyCase}`, async (t) => {
    const from = JSON.parse('{"__proto__":{"polluted":true},"constructor":"c","inner":{"__proto__":1}}');
    const converted = convertKeys(from, keyCase);
    if (typeof converted !== 'object' || converted === null) return t.fail('not an object');
    t.equal(Object.getPrototypeOf(converted), null);
    t.same(Object.keys(converted), ['__proto__', 'constructor', 'inner']);
    t.equal('toString' in converted, false);
    return t.equal(Reflect.get({}, 'polluted'), undefined);
  });
}

t.test('colliding keys with different values are an error that names both', async (t) => {
  const from = { inner: [{ aliceSmith: 1, alice_smith: 2 }] };
  t.throws(() => convertKeys(from, 'snake'), {
    name: 'ParseError',
    message: /"aliceSmith" and "alice_smith" .*keyCase: 'preserve'/,
  });
  t.same(convertKeys(from, 'preserve'), from);
});

t.test('colliding keys with the same value lose nothing', async (t) => {
  t.same(convertKeys({ accessToken: 'at', access_token: 'at' }, 'snake'), { access_token: 'at' });
});

t.test('a deeply nested body does not overflow the stack', async (t) => {
  const deep = JSON.parse(`${'{"aB":'.repeat(5000)}1${'}'.repeat(5000)}`);
  t.type(convertKeys(deep, 'snake'), 'object');
});

t.test('text, numbers and instances are returned unchanged', async (t) => {
  const date = new Date();
  t.equal(convertKeys('aB', 'snake'), 'aB');
  t.equal(convertKeys(null, 'snake'), null);
  t.same(convertKeys({ at: date }, 'snake'), { at: date });
});

t.test('camelView reads either spelling and is read-only', async (t) => {
  const parsed = { access_token: 'at', user_list: [{ user_name: 'ada' }] };
  const view = camelView(parsed);
  t.equal(view.accessToken, 'at');
  t.equal(view.access_token, 'at');
  t.match(view.userList, [{ userName: 'ada' }]);
  t.equal('accessToken' in view, true);
  t.throws(() => Object.assign(view, { accessToken: 'x' }), TypeError);
});

t.test('load reverses dump and may change values', async (t) => {
  const text = dump({ a: 1, list: [1, null, 2] });
  t.equal(text, '{"a":1,"list":[1,2]}');
  const loaded = load(text, (key, value) => (key === 'a' ? String(value) : value));
  t.same(loaded, { a: '1', list: [1, 2] });
  t.equal(Object.getPrototypeOf(loaded), null);
  t.equal(
    dump({ a: 1 }, (_key, value) => (value === 1 ? 2 : value)),
    '{"a":2}',
  );
});
